"""What designers of DNA use instead: `greedy_substitution` of tangermeme on the rewarded motif oracle, beside ours.

    pip install --no-deps tangermeme==1.6.0 memelite==0.5.0 figwig && pip install numba pyfaidx
    python -m benchmarks.peers.designers --weights weights/sdpo.safetensors --limit 64 --out results/sdpo-designers.json

All begin with the same sequences, which the model of the weights writes in the host's own order. The oracle may be
asked so many times for a sequence (--calls, with commas). tangermeme asks once for the start, and in a round for all
four bases at every place that it may change; as many whole rounds are made as that allows. Where not even one is, a few
places alone may be changed, drawn for every sequence. The card is that of a comparison: what comes out is judged as any
design, by the classifier that nobody rewarded, words of three bases, likelihood and total.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.decode.loop import Model
from dprm.evaluate.arms import Contender
from dprm.evaluate.compare import Comparison, compare
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode, Rollout
from dprm.hosts.sdpo.bases import LENGTH, one_hot
from dprm.hosts.sdpo.greedy import ORACLE, GreedySubstitution
from dprm.hosts.sdpo.motifs import motif_score
from dprm.order.noise import mix_rows

OURS, THEIRS = "greedy substitution", "tangermeme"


class MotifOracle(torch.nn.Module):
    """One-hot sequences [N,4,L] → [N,1]. Attributes: asked, for how many sequences so far."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def forward(self, bases: Tensor) -> Tensor:
        self.asked += len(bases)
        return motif_score(bases.argmax(1)).unsqueeze(1)


@dataclass(frozen=True)
class Tangermeme:
    """The way: decode in the host's own order, then let tangermeme substitute. Attributes: rounds, at most; places that
    may be changed."""

    rounds: int
    places: int = LENGTH

    @classmethod
    def of(cls, calls: int) -> Tangermeme:
        """The most that so many oracle calls a sequence allow."""
        if calls < 5:
            raise ValueError(f"calls is {calls}: one place takes 5, the start and four bases")
        rounds = max(1, (calls - 1) // (4 * LENGTH))
        return cls(rounds, min(LENGTH, (calls - 1) // (4 * rounds)))

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        from tangermeme.design import greedy_substitution

        began = time.perf_counter()
        start = Decode().answer(host, problems, seed, model)
        designs, asked = [], []
        for tokens, draw in zip(start.tokens, mix_rows(problems.key, seed).tolist(), strict=True):
            oracle, allowed = MotifOracle(), torch.zeros(LENGTH, dtype=torch.bool)
            allowed[torch.randperm(LENGTH, generator=torch.Generator().manual_seed(draw))[: self.places]] = True
            # By default no round is made at all; without tolerance it goes on as long as there is an improvement.
            how: dict[str, Any] = {"max_iter": self.rounds, "tol": 0.0, "input_mask": allowed}
            made = greedy_substitution(oracle, one_hot(tokens.unsqueeze(0)), batch_size=LENGTH, device="cpu", **how)
            designs.append(made.argmax(1))
            asked.append(oracle.asked)
        tokens = torch.cat(designs)
        seconds = torch.full((len(tokens),), (time.perf_counter() - began) / max(1, len(tokens)))
        calls = {**start.calls, ORACLE: torch.tensor(asked)}
        return replace(start, tokens=tokens, scores=host.scores(problems, tokens), calls=calls, seconds=seconds)

    def spec(self) -> Any:
        return ["tangermeme", self.rounds, self.places]


def compared(host: Host, problems: Problems, calls: list[int], split: str, command: str = "") -> Comparison:
    """The card of both at every number of oracle calls; ours where it has whole rounds.

    Its note `designers` says how often both end in the same sequence, and how often in the same score: exact ties may
    be decided otherwise.
    """
    arms, pairs = {host.decoding.signal.name: Contender(Decode())}, {}
    for most in calls:
        theirs = Tangermeme.of(most)
        named = f"{theirs.rounds} rounds" if theirs.places == LENGTH else f"{theirs.places} places"
        arms[f"{THEIRS}, {named}"] = Contender(theirs)
        if theirs.places == LENGTH:
            arms[f"{OURS}, {named}"] = Contender(GreedySubstitution(theirs.rounds))
            pairs[named] = f"{THEIRS}, {named}", f"{OURS}, {named}"
    comparison = compare(host, problems, arms, split=split, command=command)
    told = {}
    for named, names in pairs.items():
        one, other = (comparison.rollouts[name][0] for name in names)
        sequence, score = (one.tokens == other.tokens).all(1), (one.scores - other.scores)[:, 0].abs() < 1e-4
        told[named] = {"same sequence": float(sequence.float().mean()), "same score": float(score.float().mean())}
    comparison.card.notes["designers"] = told
    return comparison


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.designers", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--weights", type=Path, help="default the committed ones")
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int, default=64)
    parser.add_argument("--calls", default="21,8001", help="of the oracle, a sequence")
    parser.add_argument("--compile", action="store_true", help="bfloat16 and fused")
    parser.add_argument("--out", type=Path, required=True)
    told = parser.parse_args(arguments)
    from dprm.hosts import load

    host = load("sdpo", compiled=told.compile, weights=told.weights)
    command = " ".join(["python -m benchmarks.peers.designers", *arguments])
    problems = host.problems(told.split, told.limit)
    comparison = compared(host, problems, [int(calls) for calls in told.calls.split(",")], told.split, command)
    comparison.save(told.out)
    for name, arm in comparison.card.arms.items():
        numbers = ", ".join(f"{metric} {each.mean:.3f}" for metric, each in arm.metrics.items())
        print(f"{name}: {numbers}; {arm.calls.get(ORACLE, 0):,.0f} oracle calls, {arm.seconds:.2f} s")
    print(comparison.card.notes["designers"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
