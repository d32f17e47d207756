"""What a designer would do instead: greedy substitution on the rewarded oracle, from a sequence of the model.

    every round   all 3·L single substitutions are scored, and the best is made if it is better

It sees the oracle that it is judged by, 3·L times a round, and no other judge. Its calls are counted.
Shapes: N sequences, L bases.
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
from dprm.hosts.sdpo.motifs import motif_score
from dprm.order.checks import check_count

ORACLE = "oracle"


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
    length = tokens.shape[1]
    place = torch.arange(length).repeat_interleave(3)
    shift = torch.arange(1, 4).repeat(length)
    improved = []
    for row in tokens:
        variants = row.repeat(3 * length, 1)
        variants[torch.arange(3 * length), place] = (row[place] + shift) % 4
        scores = motif_score(variants)
        best = scores.argmax()
        improved.append(variants[best] if scores[best] > motif_score(row.unsqueeze(0))[0] else row)
    return torch.stack(improved)
