"""Empirical-Bayes shrinkage of a cell towards its parents: all cells → phase → confidence bin → aux.

At each level the children of one parent are draws around it: a child's mean has variance τ² around the parent's, an
event variance σ² around its child's mean. With κ = σ²/τ² the posterior mean of a child with n events is
(n·mean + κ·parent)/(n + κ): sparse cells lean on their parent, rich cells on themselves, and where the children do not
differ (τ² = 0) they all take the parent's value.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.order.cells import Cells


def shrink(sums: Tensor, cells: Cells) -> tuple[Tensor, Tensor]:
    """Shrunken mean of Y and the evidence behind it.

    Args:
        sums: [3,cells] float64 (N, S, Q) of `Stats.sums`.
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
