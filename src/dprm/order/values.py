"""From evidence to values: R̂ = (1/β) log(S/N) relative to a baseline, and how far it can be off.

Two facts force a baseline. The gated score is not invariant to R → R + c: with rewards in [0, 1] every visited cell
would be promoted over every unvisited one. And raw on-policy values mostly measure how easy the prompt was. So

    none      R̂ = (1/β) log(S/N)                      the paper to the letter; an empty cell has 0
    global    R̂ = (1/β) log(S/N) − (1/β) log(ΣS/ΣN)   relative to all decisions
    prompt    the same, after rewards were centred inside the trajectories of one prompt

and with `global` or `prompt` an empty cell has 0, the baseline itself: unknown means the host's order.

Sparse cells may be shrunk towards their parents, all cells → phase → confidence bin → aux. At each level the children
of one parent are draws around it: a child's mean has variance τ² around the parent's, an event variance σ² around its
child's mean. With κ = σ²/τ² the posterior mean of a child with n events is (n·mean + κ·parent)/(n + κ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order.cells import Cells
from dprm.order.checks import check_number
from dprm.order.stats import Stats

BASELINES = ("none", "global", "prompt", "auto")
_LEAST = 2.0**-61


@dataclass(frozen=True)
class Table:
    """One value and its evidence for every cell.

    Attributes:
        value: [cells] float64, R̂ relative to the baseline.
        support: [cells] float64, the events behind it; the gate is min(support/N_ready, 1).
    """

    value: Tensor
    support: Tensor


def log_moment(stats: Stats, mean: Tensor) -> Tensor:
    """(1/β) log E[e^{βR}] from a mean of Y = e^{β(R − R_max)}."""
    return stats.reward_range[1] + mean.clamp(min=_LEAST).log() / stats.beta


def estimate(stats: Stats, baseline: str, *, shrunken: bool = False) -> Table:
    """The values that `stats` supports, under `none`, `global` or `prompt`; every table of the cells by itself."""
    cells = stats.cells
    sums = stats.sums.view(3, cells.tables, cells.each)
    n, s, _ = sums
    if shrunken:
        grids = [shrink(part, cells) for part in sums.unbind(1)]
        mean, support = (torch.stack(column) for column in zip(*grids, strict=True))
    else:
        mean, support = s / n.clamp(min=1e-300), n
    value = log_moment(stats, mean)
    if baseline != "none":
        value = value - log_moment(stats, s.sum(1, keepdim=True) / n.sum(1, keepdim=True).clamp(min=1e-300))
    return Table(torch.where(support > 0, value, 0.0).flatten(), support.flatten())


def radius(stats: Stats, delta: float = 0.05, horizon: int = 1, mean_floor: float | None = None) -> Tensor:
    """Empirical-Bernstein radius of every cell's R̂, simultaneously over cells and times (the paper's rad).

        rad = 1/(β μ̲) · [ √(2 v̂ ℓ/N) + 3 (e^β − 1) ℓ/N ],   ℓ = log(3 · cells · T²/δ)

    in the units of Y = e^{β(R − R_min)} ∈ [1, e^{β·width}], with v̂ the empirical variance and N the number of
    trajectories: reveals of one trajectory share its reward. The paper divides by a known lower bound μ̲ ≤ E[Y];
    without one it is 1, what the declared range guarantees. Empty cells: inf.

    Args:
        delta: probability with which any of the intervals may fail.
        horizon: T, the number of times at which the radius is used.
        mean_floor: μ̲, if more is known than the reward range.
    """
    check_number("delta", delta, 0, 1, open_low=True)
    events, s, q = stats.sums
    n = stats.trajectories
    width = stats.reward_range[1] - stats.reward_range[0]
    unit = math.exp(stats.beta * width)
    mean = s / events.clamp(min=1e-300) * unit
    variance = (q / events.clamp(min=1e-300) * unit**2 - mean * mean).clamp(min=0)
    level = math.log(3 * stats.cells.count * horizon**2 / delta)
    deviation = (2 * variance * level / n).sqrt() + 3 * (unit - 1) * level / n
    bound = deviation / (stats.beta * (1.0 if mean_floor is None else mean_floor))
    return torch.where(n > 0, bound, math.inf)


def drift(before: Stats, after: Stats) -> Tensor:
    """|μ_after − μ_before| of every cell, Y = e^{β(R − R_min)}: one term of the variation budget D.

    0 where either has no events: a cell that was never seen has not moved.
    """
    before.check_same(after)
    unit = math.exp(before.beta * (before.reward_range[1] - before.reward_range[0]))
    (n0, s0, _), (n1, s1, _) = before.sums, after.sums
    moved = (s1 / n1.clamp(min=1e-300) - s0 / n0.clamp(min=1e-300)).abs() * unit
    return torch.where((n0 > 0) & (n1 > 0), moved, 0.0)


def shrink(sums: Tensor, cells: Cells) -> tuple[Tensor, Tensor]:
    """Shrunken mean of Y and the evidence behind it.

    Args:
        sums: [3,cells] float64 (N, S, Q) of one table.
        cells: the grid.

    Returns:
        mean [cells] and support [cells]: own events plus what the parent lends, min(κ, support of the parent).
    """
    grid = sums.reshape(3, *cells.shape)
    levels = [grid.sum((1, 2, 3)).reshape(3, 1, 1, 1), grid.sum((2, 3), keepdim=True), grid.sum(3, keepdim=True), grid]
    n, s, _ = levels[0]
    mean, support = s / n.clamp(min=1e-300), n
    for level in levels[1:]:
        mean, support = _towards(mean, support, level)
    return mean.reshape(-1), support.reshape(-1)


def _towards(parent: Tensor, parent_support: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
    n, s, q = level
    parent, parent_support = parent.expand_as(n), parent_support.expand_as(n)
    own = torch.where(n > 0, s / n.clamp(min=1e-300), parent)
    filled = int((n > 0).sum())
    total = float(n.sum())
    # Pooled variance inside children, and between them by the method of moments.
    within = float((q - n * own * own).clamp(min=0).sum()) / max(total - filled, 1.0)
    spread = float((n * (own - parent) ** 2).sum())
    weight = total - float((n * n).sum()) / max(total, 1e-300)
    between = max(spread - filled * within, 0.0) / max(weight, 1e-300)
    if between <= 0.0:
        return parent.clone(), n + parent_support
    lent = within / between
    mean = torch.where(n + lent > 0, (n * own + lent * parent) / (n + lent + 1e-300), parent)
    return mean, n + parent_support.clamp(max=lent)
