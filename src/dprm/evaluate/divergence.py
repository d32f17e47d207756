"""Where an order first parts from the reference: one decision from one canvas (the paper's first divergence).

Both decode a problem with the same random streams, so that up to the first step in which they reveal different
positions, t*, their canvases are the same, bit for bit. Of the decision at t* the two sets are compared: A chosen by
the order, C by the reference, both without what they share.

    confidence   mean over A of the confidence at its reveal, minus the same over C: what the order gave up
    value        the same of the table's values, where the values of a reveal follow from phase and confidence alone
    reward       terminal reward of the order minus that of the reference: what it got in the end
    moved        mean position of A minus that of C, in positions: below 0 is further left

All over the problems that part at all. Shapes: N problems, L positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import mean_interval
from dprm.evaluate.diagnostics import progress_of
from dprm.evaluate.replays import first_parting
from dprm.host.rollout import Rollout
from dprm.order.order import Order


def divergence(
    rollouts: Sequence[Rollout],
    control: Sequence[Rollout],
    rewards: Tensor,
    usual: Tensor,
    order: Order | None = None,
    *,
    groups: Tensor | None = None,
    resamples: int = 5000,
    seed: int = 0,
) -> dict[str, Any]:
    """The first divergence of an order from the reference, as plain numbers for a card.

    Args:
        rollouts, control: one a decode seed. rewards, usual: [S,N], terminal rewards of both.
        order: whose table has values; None, and an order without a table, has none.
        groups: [N] int64, problems that are resampled together; None: every one by itself.

    Returns:
        parted, the share of answers that part; same_canvas, the share of those whose canvases agree up to there; step,
        the mean of t* as a share of the steps; and the four differences, each with low and high.
    """
    run, other = Rollout.joined(rollouts), Rollout.joined(control)
    first = first_parting(run.step_map, other.step_map)
    parted = first > 0
    facts: dict[str, Any] = {"parted": round(float(parted.double().mean()), 5)}
    if not bool(parted.any()):
        return facts
    run, other, at = run[parted], other[parted], first[parted].unsqueeze(1)
    mine, theirs = run.step_map == at, other.step_map == at
    mine, theirs = mine & ~theirs, theirs & ~mine
    # Orders may also part in how many they reveal: then one side is empty, and there is nothing to compare.
    both = mine.any(1) & theirs.any(1)
    earlier = (run.step_map < at) & (other.step_map < at)
    same = ((run.tokens == other.tokens) | ~earlier).all(1)
    steps = torch.maximum(run.step_map.amax(1), other.step_map.amax(1)).clamp(min=1)
    facts["same_canvas"] = round(float(same.double().mean()), 5)
    facts["step"] = round(float(((at.squeeze(1) - 1) / steps).double().mean()), 5)
    place = torch.arange(mine.shape[1], dtype=torch.float64).expand(mine.shape)
    differences = {
        "confidence": _mean(run.confidence, mine) - _mean(other.confidence, theirs),
        "moved": _mean(place, mine) - _mean(place, theirs),
    }
    if order is not None and order.head is None and order.cells.aux == order.cells.tables == 1:
        differences["value"] = _mean(_values(run, order), mine) - _mean(_values(other, order), theirs)
    of_problem = (torch.arange(rewards.shape[1]) if groups is None else groups.cpu()).repeat(len(rewards))[parted]
    for name, column in differences.items():
        if bool(both.any()):
            facts[name] = _listed(mean_interval(column[both], resamples, seed=seed, groups=of_problem[both]))
    gained = (rewards - usual).flatten().cpu()[parted]
    facts["reward"] = _listed(mean_interval(gained.double(), resamples, seed=seed, groups=of_problem))
    return facts


def _values(rollout: Rollout, order: Order) -> Tensor:
    """[N,L] the value of every reveal's cell, 0 where nothing was revealed."""
    cells = order.cells
    phase = (progress_of(rollout.step_map) * cells.phases).long().clamp(max=cells.phases - 1)
    level = (rollout.confidence.nan_to_num(0.0) * cells.bins).long().clamp(0, cells.bins - 1)
    return order.table().value[phase * cells.bins + level]


def _mean(column: Tensor, where: Tensor) -> Tensor:
    """[N] the mean over the marked positions of each row; NaN where there are none."""
    return torch.where(where, column.double(), 0.0).sum(1) / where.sum(1)


def _listed(interval: tuple[float, float, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in zip(("mean", "low", "high"), interval, strict=True)}
