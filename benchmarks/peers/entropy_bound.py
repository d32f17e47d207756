"""The peer that learns nothing: as many positions a step as an entropy bound allows (EB-Sampler), by rising entropy.

Its number of model calls is its own. The bound is chosen on the select split: the tightest whose mean number of calls
is not above that of the host's schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dprm.decode.counts import EntropyBound
from dprm.decode.loop import Model
from dprm.host.decoded import decoded
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode, Rollout
from dprm.order import Order

HALVINGS = 8


@dataclass(frozen=True)
class Bounded:
    """A way of answering. Attributes: gamma, the bound."""

    gamma: float

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        bounded = host.with_decoding(count=EntropyBound(self.gamma))
        return Decode(Order(signal="entropy")).answer(bounded, problems, seed, model)

    def spec(self) -> Any:
        return ["entropy bound", self.gamma]


def matched(host: Host, problems: Problems, calls: float, rows: int = 64, seed: int = 0) -> tuple[Bounded, int]:
    """The tightest bound, to some digits, that takes no more than `calls` a problem, and what finding it took."""
    low, high, spent = 0.0, 1.0, 0

    def taken(gamma: float) -> float:
        nonlocal spent
        rollout = decoded(host, problems, {"": Bounded(gamma)}, seed=seed, rows=rows)[""]
        spent += int(rollout.nfe.sum())
        return float(rollout.nfe.double().mean())

    while taken(high) > calls and high < 1e4:
        low, high = high, high * 4
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if taken(middle) <= calls else (middle, high)
    return Bounded(high), spent
