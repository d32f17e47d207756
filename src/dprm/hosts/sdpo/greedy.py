"""What a designer would do instead: greedy substitution on the rewarded oracle, from a sequence of the model.

    every round   all 3·L single substitutions are scored, and the best is made if it is better

It is the greedy substitution of `tangermeme` with one base at a time; `benchmarks.peers.designers` compares them. It
sees the oracle that it is judged by, 3·L times a round, and no other judge. Its calls are counted as those of any
oracle; worked out are the places of a matrix that a substitution changes, and no others.
Shapes: N sequences, L bases, K factors, W width.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.decode.loop import Model
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode, Rollout
from dprm.hosts.sdpo.motifs import of_best, places, strands
from dprm.order.checks import check_count

ORACLE = "oracle"
# Less is no improvement: sums in another order differ by as much.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class GreedySubstitution:
    """The way: decode in the host's own order, then substitute.

    Attributes:
        rounds: substitutions at most.
    """

    rounds: int = 10

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds, 1)

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        began = time.perf_counter()
        start = Decode().answer(host, problems, seed, model)
        tokens = start.tokens
        for _ in range(self.rounds):
            tokens = best_substitution(tokens)
        scored = 1 + 3 * tokens.shape[1] * self.rounds
        calls = {**start.calls, ORACLE: torch.full((len(tokens),), scored)}
        seconds = (time.perf_counter() - began) / max(1, len(tokens))
        scores = host.scores(problems, tokens)
        return replace(start, tokens=tokens, scores=scores, calls=calls, seconds=torch.full((len(tokens),), seconds))

    def spec(self) -> Any:
        return ["greedy substitution", self.rounds]


def best_substitution(tokens: Tensor) -> Tensor:
    """[N,L] with the one base changed that raises the motif score most; as it is where none does."""
    scores = substitution_scores(tokens)
    own = scores.gather(1, tokens.unsqueeze(1)).amax((1, 2))
    best, index = scores.flatten(1).max(1)
    base, place = index // tokens.shape[1], index % tokens.shape[1]
    changed = tokens.scatter(1, place.unsqueeze(1), base.unsqueeze(1))
    return torch.where((best > own + _ROUNDING).unsqueeze(1), changed, tokens)


def substitution_scores(tokens: Tensor) -> Tensor:
    """[N,4,L] the motif score with every base at every place, the other bases being as they are.

    Only a matrix that stands over the place scores another sum; elsewhere the best place is that of before.
    """
    filters, scores = strands().to(tokens.device), places(tokens)
    width, length = filters.shape[2], tokens.shape[1]
    off = scores.new_full((*scores.shape[:2], width), -torch.inf)
    # [N,2K,L,W] of every base the places that cover it, the last one first: it is their first, second, … base there.
    over = torch.cat([off, scores], 2).unfold(2, width, 1)[:, :, 1:].flip(3)
    before = torch.cat([off, scores], 2)[:, :, :length].cummax(2).values
    after = torch.cat([scores[:, :, 1:], off[:, :, :1]], 2).flip(2).cummax(2).values.flip(2)
    own = filters.permute(1, 0, 2)[tokens].transpose(1, 2)  # [N,2K,L,W]
    found = []
    for base in range(4):
        changed = (over + filters[:, base].unsqueeze(1) - own).amax(3)
        found.append(of_best(changed.maximum(before).maximum(after)))
    return torch.stack(found, 1)
