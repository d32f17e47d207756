"""Metrics: what a finished answer is judged by; and preferences: which of it is the terminal reward.

Shapes: N answers, J metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dprm.order.checks import check_bounds, check_one_of
from dprm.order.scalarize import scalarize
from dprm.order.stats import checked_range

BENEFIT, HELD_OUT, SET = "benefit", "held out", "set"


@dataclass(frozen=True)
class Metric:
    """One number of an answer.

    Attributes:
        name: for people and cards. range: lowest and highest value; the larger the better.
        role: "benefit" can be rewarded; "held out" never is; "set" belongs to all outputs together (`Host.judge_set`).
    """

    name: str
    range: tuple[float, float] = (0.0, 1.0)
    role: str = BENEFIT

    def __post_init__(self) -> None:
        checked_range(self.range)
        check_one_of("role", self.role, (BENEFIT, HELD_OUT, SET))


@dataclass(frozen=True)
class Preference:
    """Benefits to one terminal reward.

    Attributes:
        weights: how much each benefit counts, by name, in all 1; none: the first benefit is the reward as it is.
        kind: "weighted" or "tchebycheff", see `scalarize`; several benefits must then lie in [0, 1].
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    kind: str = "weighted"

    def reward(self, scores: Tensor, metrics: Sequence[Metric]) -> Tensor:
        """[N] float64 reward of scores [N,J]."""
        column = self._column(metrics)
        if column is not None:
            return scores[:, column].double()
        return scalarize(scores, self._listed(metrics), self.kind).reward.double()

    def range(self, metrics: Sequence[Metric]) -> tuple[float, float]:
        """The lowest and the highest reward there can be."""
        column = self._column(metrics)
        if column is not None:
            return metrics[column].range
        ends = torch.zeros(1, len(metrics))
        return scalarize(ends, self._listed(metrics), self.kind).reward_range

    def _column(self, metrics: Sequence[Metric]) -> int | None:
        """The one metric that is the reward, if it is one."""
        if self.weights:
            return None
        return next(index for index, metric in enumerate(metrics) if metric.role == BENEFIT)

    def _listed(self, metrics: Sequence[Metric]) -> list[float]:
        """A weight for every metric."""
        benefits = {metric.name: metric for metric in metrics if metric.role == BENEFIT}
        for name in self.weights:
            if name not in benefits:
                raise ValueError(f"preference weighs {name!r}: expected benefits among {', '.join(benefits)}")
            if benefits[name].range != (0.0, 1.0):
                raise ValueError(f"benefit {name!r} has range {benefits[name].range}: expected (0, 1) to be weighed")
        return [self.weights.get(metric.name, 0.0) for metric in metrics]

    @classmethod
    def read(cls, text: str) -> Preference:
        """From words such as `qed=0.55,sa=0.45` or `tchebycheff:qed=0.55,sa=0.45`."""
        kind, _, listed = text.rpartition(":")
        weights = {}
        for entry in listed.split(","):
            name, mark, number = entry.partition("=")
            try:
                weights[name.strip()] = float(number)
            except ValueError:
                mark = ""
            if not mark:
                raise ValueError(f"preference is {text!r}: expected BENEFIT=WEIGHT, with commas") from None
        return cls(weights, check_one_of("preference", kind or "weighted", ("weighted", "tchebycheff")))


def checked_scores(scores: Tensor, answers: int, metrics: Sequence[Metric]) -> Tensor:
    """Scores [N,J], or [N] of one metric, as [N,J] float32; ValueError names metric, row and value that do not fit."""
    scores = torch.as_tensor(scores).detach().cpu()
    judged = [metric for metric in metrics if metric.role != SET]
    if scores.dim() == 1 and len(judged) == 1:
        scores = scores.unsqueeze(1)
    if tuple(scores.shape) != (answers, len(judged)):
        names = ", ".join(metric.name for metric in judged)
        raise ValueError(f"judge gave scores {tuple(scores.shape)}: expected ({answers}, {len(judged)}) for {names}")
    for index, metric in enumerate(judged):
        low, high = metric.range
        want = f"outside the declared range [{low:g}, {high:g}]"
        check_bounds(f"score of {metric.name}", scores[:, index], low, high, want)
    return scores.float()
