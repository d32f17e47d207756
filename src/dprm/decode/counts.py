"""Count rules: how many positions to reveal now. The host's decision; the order only says which.

A rule is called with the reading, the candidates [B,L] and the step of each row inside its window [B]; it returns an
int or [B]. Every rule asks for at least one position where a row has candidates, never for more than there are, and
looks at each row alone. Two published copies do not: an entropy bound that takes its running maximum over the batch,
and one that leaves the maximum out. A rule whose answer depends on the step says so with `by_step`; one that ends after
a fixed number of them has `steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from dprm.order.checks import check_count, check_number
from dprm.order.reading import Reading


class CountRule(Protocol):
    """How many positions to reveal."""

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        """An int, or [B] int64."""


def depends_on_step(rule: CountRule) -> bool:
    """Whether the same canvas may be given another count at another step; assumed of a rule that does not say."""
    return bool(getattr(rule, "by_step", True))


@dataclass(frozen=True)
class Fixed:
    """m positions at every step."""

    by_step: ClassVar[bool] = False
    m: int = 1

    def __post_init__(self) -> None:
        check_count("budget", self.m, 1)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        return self.m


@dataclass(frozen=True)
class Even:
    """All candidates of a window in `steps` steps, as evenly as whole numbers allow, the larger shares first.

    ⌈remaining/steps left⌉ at every step is the schedule of LLaDA: 10 positions in 4 steps are 3, 3, 2, 2.
    """

    steps: int

    def __post_init__(self) -> None:
        check_count("steps", self.steps, 1)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        left = (self.steps - step).clamp(min=1)
        return (candidates.sum(1) + (left - 1)) // left


@dataclass(frozen=True)
class Cumulative:
    """For samplers in which visible positions compete again: after step t of T, n − ⌊n(1 − t/T)⌋ of n are visible."""

    steps: int

    def __post_init__(self) -> None:
        check_count("steps", self.steps, 1)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        n = candidates.sum(1)
        return n - n * (self.steps - 1 - step).clamp(min=0) // self.steps


@dataclass(frozen=True)
class Threshold:
    """Every position with confidence above τ, at least one (Fast-dLLM)."""

    by_step: ClassVar[bool] = False
    tau: float = 0.9

    def __post_init__(self) -> None:
        check_number("tau", self.tau, 0, 1)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        return _at_least_one((candidates & (reading.confidence > self.tau)).sum(1), candidates)


@dataclass(frozen=True)
class Factor:
    """The largest n with (n + 1)(1 − c_n) < f, c_n the n-th largest confidence (Fast-dLLM)."""

    by_step: ClassVar[bool] = False
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 0, open_low=True)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        ranked = torch.where(candidates, reading.confidence, -torch.inf).sort(dim=1, descending=True).values
        n = torch.arange(1, ranked.shape[1] + 1, device=ranked.device)
        fits = (n + 1) * (1.0 - ranked) < self.factor
        return _at_least_one((n * fits).amax(1), candidates)


@dataclass(frozen=True)
class EntropyBound:
    """The longest prefix, by rising entropy, with Σ H − max H ≤ γ (EB-Sampler)."""

    by_step: ClassVar[bool] = False
    gamma: float = 0.1

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> int | Tensor:
        rising = torch.where(candidates, reading.entropy, torch.inf).sort(dim=1).values
        # In rising order the largest so far is the last: its own term drops out of the sum.
        before = rising.cumsum(1) - rising
        return _at_least_one(((before <= self.gamma) & (rising < torch.inf)).sum(1), candidates)


def _at_least_one(count: Tensor, candidates: Tensor) -> Tensor:
    return torch.minimum(count.clamp(min=1), candidates.sum(1))


def resolve_count(budget: int | CountRule) -> CountRule:
    """A count rule from itself, or from a whole number of positions a step."""
    return budget if callable(budget) else Fixed(budget)
