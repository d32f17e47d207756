"""What every arm of a card earned: means, differences and their intervals, from the outcomes alone.

Decode seeds share their problems, so they are averaged problem by problem before problems are resampled. Shapes: S
decode seeds, N problems, J metrics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import Interval, difference_interval, mean_interval, spread
from dprm.evaluate.card import Arm, Card, Estimate
from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.passk import KS, mean_pass, pass_table
from dprm.evaluate.seeds import averages
from dprm.evaluate.verdict import judge


def judged_again(card: Card, outcomes: Outcomes) -> Card:
    """The card with every number that outcomes decide worked out from them: intervals, seeds, verdict.

    A comparison makes its card so; from the file beside a card come the same numbers.
    """
    missing = [name for name in card.arms if name not in outcomes.scores]
    if missing or len(outcomes.key) != card.count:
        what = f"lack {', '.join(missing)}" if missing else f"are of {len(outcomes.key)} problems"
        raise ValueError(f"these outcomes are not those of the card of {card.count} problems: they {what}")
    sampling = _Sampling(card.paired, outcomes.group, card.resamples, card.seeds[0])
    rewards = {name: _rewards(card, outcomes.scores[name]) for name in card.arms}
    arms = {}
    for name, arm in card.arms.items():
        control = None if name == card.reference else card.reference
        reward = sampling.estimate(rewards[name], None if control is None else rewards[control])
        metrics = dict(arm.metrics)
        for column, metric in enumerate(card.judged):
            values = outcomes.scores[name][..., column].double()
            other = None if control is None else outcomes.scores[control][..., column].double()
            # Where the reward is this metric, the numbers are the same.
            same = torch.equal(values, rewards[name])
            metrics[metric.name] = reward if same else sampling.estimate(values, other)
        ordered = {metric.name: replace(metrics[metric.name]) for metric in card.metrics if metric.name in metrics}
        arms[name] = _with_gap(replace(arm, **vars(reward), metrics=ordered), rewards, name, sampling)
    notes = {note: value for note, value in card.notes.items() if note not in ("seeds", "passk")}
    per_problem = {name: reward.mean(0) for name, reward in rewards.items()}
    fits = {name: arm.fit for name, arm in card.arms.items() if arm.fit and arm.ablates is None}
    if groups_of_fits := averages(
        per_problem,
        card.reference,
        fits,
        paired=card.paired,
        resamples=card.resamples,
        seed=card.seeds[0],
        groups=outcomes.group,
    ):
        notes["seeds"] = groups_of_fits
    if passing := _passing(card, outcomes, sampling):
        notes["passk"] = passing
    judged = replace(card, arms=arms, notes=notes)
    return replace(judged, verdict=judge(judged).facts())


@dataclass(frozen=True)
class _Sampling:
    """How intervals are drawn: as the host declares, whole groups together."""

    paired: bool
    groups: Tensor
    resamples: int
    seed: int

    def estimate(self, values: Tensor, control: Tensor | None) -> Estimate:
        """The estimate of values [S,N], against control [S,N] if there is one."""
        mean, low, high = mean_interval(values.mean(0), self.resamples, seed=self.seed, groups=self.groups)
        estimate = Estimate(mean, low, high, spread=spread(values.mean(1)))
        if control is None:
            return estimate
        delta, delta_low, delta_high = self.difference(values, control)
        return replace(estimate, delta=delta, delta_low=delta_low, delta_high=delta_high)

    def difference(self, values: Tensor, control: Tensor) -> Interval:
        """values minus control, both [S,N]."""
        return difference_interval(
            values.mean(0),
            control.mean(0),
            paired=self.paired,
            resamples=self.resamples,
            seed=self.seed,
            groups=self.groups,
        )


def _passing(card: Card, outcomes: Outcomes, sampling: _Sampling) -> dict[str, dict[str, Any]]:
    """pass@K of every arm where tokens are drawn, the decode seeds being the samples: of every K its mean under both
    estimators, and the mean over K (unbiased) with its interval and its difference to the reference."""
    solved = next((column for column, metric in enumerate(card.judged) if metric.name == "solved"), None)
    if solved is None or len(card.seeds) < 2 or "temperature" not in card.decoding:
        return {}
    best = card.judged[solved].range[1]
    success = {name: (outcomes.scores[name][..., solved] >= best).T for name in card.arms}
    ks = [k for k in KS if k <= len(card.seeds)]
    passed = {name: mean_pass(rows, ks).unsqueeze(0) for name, rows in success.items()}
    table = {}
    for name, rows in success.items():
        control = None if name == card.reference else passed[card.reference]
        mean = sampling.estimate(passed[name], control)
        found = {field: value for field, value in vars(mean).items() if value is not None and field != "spread"}
        table[name] = {**pass_table(rows, ks), "mean over K": found}
    return table


def _with_gap(arm: Arm, rewards: dict[str, Tensor], name: str, sampling: _Sampling) -> Arm:
    """An ablation with its distance to the arm that it takes something away from."""
    if arm.ablates is None:
        return arm
    gap, low, high = sampling.difference(rewards[arm.ablates], rewards[name])
    return replace(arm, gap=gap, gap_low=low, gap_high=high)


def _rewards(card: Card, scores: Tensor) -> Tensor:
    """[S,N] float64, the terminal rewards of scores [S,N,J]."""
    return card.preference.reward(scores.flatten(0, 1), card.judged).view(scores.shape[:2])
