"""Metrics: what a finished answer is judged by; and preferences: which of it is the terminal reward.

Shapes: N answers, J metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dprm.order.checks import check_bounds, check_number, check_one_of
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
            Metrics that are not named have no part in it.
        kind: "weighted" or "tchebycheff", see `scalarize`; several benefits must then lie in [0, 1].
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    kind: str = "weighted"

    def __post_init__(self) -> None:
        check_one_of("kind", self.kind, ("weighted", "tchebycheff"))

    def __str__(self) -> str:
        """As `read` takes it; empty where it is the first benefit."""
        listed = ",".join(f"{name}={weight:g}" for name, weight in self.weights.items())
        return f"tchebycheff:{listed}" if self.kind == "tchebycheff" else listed

    def reward(self, scores: Tensor, metrics: Sequence[Metric]) -> Tensor:
        """[N] float64 reward of scores [N,J]."""
        columns = self._columns(metrics)
        if not self.weights:
            return scores[:, columns[0]].double()
        return scalarize(scores[:, columns], list(self.weights.values()), self.kind).reward.double()

    def range(self, metrics: Sequence[Metric]) -> tuple[float, float]:
        """The lowest and the highest reward there can be."""
        columns = self._columns(metrics)
        if not self.weights:
            return metrics[columns[0]].range
        return scalarize(torch.zeros(1, len(columns)), list(self.weights.values()), self.kind).reward_range

    def _columns(self, metrics: Sequence[Metric]) -> list[int]:
        """The benefits that are weighed, or the first one."""
        benefits = {metric.name: index for index, metric in enumerate(metrics) if metric.role == BENEFIT}
        if not benefits:
            names = ", ".join(metric.name for metric in metrics)
            raise ValueError(f"metrics are {names}: none of them is a benefit that could be the reward")
        for name in self.weights:
            if name not in benefits:
                raise ValueError(f"preference weighs {name!r}: expected benefits among {', '.join(benefits)}")
            declared = metrics[benefits[name]].range
            if declared != (0.0, 1.0):
                raise ValueError(f"benefit {name!r} has range {declared}: expected (0, 1) to be weighed")
        return [benefits[name] for name in self.weights] or list(benefits.values())[:1]

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
        return cls(weights, kind or "weighted")


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


def checked_set_scores(scores: Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    """What `Host.judge_set` gives: a number in range for every metric of the set, or ValueError names the one."""
    for metric in metrics:
        if metric.role == SET:
            if metric.name not in scores:
                listed = ", ".join(scores) or "nothing"
                raise ValueError(f"judge_set gave {listed}: expected {metric.name} as well")
            check_number(f"judge_set[{metric.name!r}]", scores[metric.name], *metric.range)
    return {name: float(score) for name, score in scores.items()}
