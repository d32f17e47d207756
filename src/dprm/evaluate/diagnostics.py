"""Diagnostics: what an order selected, what its table knows there, and whether any of it reaches the output.

    selections            how often each confidence bin is selected, early and late, and at which cross-entropy
    agreement             the same against known answers
    residual_coverage     how much of what is selected, bin by bin, lies in cells without enough evidence
    stored_coverage       which share of all cells has evidence, and enough of it
    settled_share         how much of a table's evidence is for values larger than they can be off
    terminal_sensitivity  whether different orders end in different outputs, compared exactly

Low-confidence bins are the residual region: what a confidence order leaves for last, or never sees in time.
Shapes: N problems, L positions, B confidence bins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.fit.tracking import DELTA
from dprm.host.rollout import Rollout
from dprm.order.checks import check_count, check_number
from dprm.order.order import Order
from dprm.order.stats import Stats
from dprm.order.values import Table, radius

# The paper's residual region, bins 0 to 5 of 16, as a confidence; and where its late phase begins.
LOW, LATE = 6 / 16, 0.5


@dataclass(frozen=True)
class Selections:
    """What was selected, by confidence bin.

    Attributes:
        share, late: [B] float64, shares of all reveals, and of those in the late phase.
        cross_entropy: [B] float64, mean −log confidence of the reveals of a bin; NaN where there are none.
        late_low: share of the late reveals whose confidence is in the low bins.
    """

    share: Tensor
    late: Tensor
    cross_entropy: Tensor
    late_low: float

    def facts(self) -> dict[str, Any]:
        """For a card."""
        columns = {"share": self.share, "late": self.late, "cross_entropy": self.cross_entropy}
        return {"late_low": round(self.late_low, 5), **{name: listed(column) for name, column in columns.items()}}


@dataclass(frozen=True)
class Agreement:
    """Reveals against known answers, by confidence bin; NaN where there are none.

    Attributes:
        right: [B] float64, share of the reveals that are the answer's token.
        cross_entropy: [B] float64, mean of −log p where it is and −log(1 − p) where it is not, p the confidence.
    """

    right: Tensor
    cross_entropy: Tensor


@dataclass(frozen=True)
class Coverage:
    """Where a policy decides without enough evidence.

    Attributes:
        unready: [B] float64, of the reveals of a bin, the share in cells that are not ready; NaN where there are none.
        low: the same for all reveals in the low bins; NaN where there are none.
    """

    unready: Tensor
    low: float

    def facts(self) -> dict[str, Any]:
        """For a card."""
        return {"unready": listed(self.unready), "unready_low": listed(torch.tensor([self.low]))[0]}


@dataclass(frozen=True)
class Sensitivity:
    """Whether orders end in different outputs.

    Attributes:
        identical: share of problems with one and the same output under all orders.
        distinct: mean number of different outputs of a problem.
    """

    identical: float
    distinct: float

    def facts(self) -> dict[str, float]:
        """For a card."""
        return {"identical": self.identical, "distinct": self.distinct}


def selections(rollout: Rollout, bins: int = 16, late: float = LATE, low: float = LOW) -> Selections:
    """What an order selected, by confidence bin.

    Args:
        late: progress from which on a reveal counts as late. low: confidence below which a bin is low.
    """
    check_number("late", late, 0, 1)
    revealed, column = _revealed(rollout, bins)
    tardy = progress_of(rollout.step_map)[revealed] >= late
    entropy = -rollout.confidence[revealed].double().clamp(min=1e-30).log()
    count = column.bincount(minlength=bins).double()
    after = column[tardy].bincount(minlength=bins).double()
    share = after / after.sum().clamp(min=1)
    return Selections(
        share=count / count.sum().clamp(min=1),
        late=share,
        cross_entropy=column.bincount(entropy, minlength=bins) / count,
        late_low=float(share[: _low_bins(bins, low)].sum()),
    )


def agreement(rollout: Rollout, answers: Tensor, bins: int = 16) -> Agreement:
    """Reveals against the answers [N,L], where every position has one right token."""
    if answers.shape != rollout.tokens.shape:
        shapes = f"{tuple(answers.shape)}, the rollout {tuple(rollout.tokens.shape)}"
        raise ValueError(f"answers has shape {shapes}: expected one token a position")
    revealed, column = _revealed(rollout, bins)
    right = (rollout.tokens == answers)[revealed].double()
    confidence = rollout.confidence[revealed].double()
    likelihood = torch.where(right > 0, confidence, 1 - confidence)
    count = column.bincount(minlength=bins).double()
    entropy = -likelihood.clamp(min=1e-30).log()
    return Agreement(column.bincount(right, minlength=bins) / count, column.bincount(entropy, minlength=bins) / count)


def residual_coverage(rollout: Rollout, order: Order, low: float = LOW) -> Coverage:
    """How much of what was selected lies in cells of the order's table that are not ready.

    A rollout knows phase and confidence of a reveal, not the host's own state: with several states a reveal counts as
    ready by the share of ready cells among them, weighed by their evidence; so it does with several tables.
    """
    cells = order.cells
    support = order.table().support.view(cells.tables, *cells.shape).movedim(0, -1).flatten(-2)
    trusted = (support * (support >= order.gate.ready)).sum(-1)
    ready = (trusted / support.sum(-1).clamp(min=1e-300)).flatten()
    revealed, column = _revealed(rollout, cells.bins)
    phase = (progress_of(rollout.step_map)[revealed] * cells.phases).long().clamp(max=cells.phases - 1)
    missing = 1 - ready[phase * cells.bins + column]
    count = column.bincount(minlength=cells.bins).double()
    unready = column.bincount(missing, minlength=cells.bins)
    few = _low_bins(cells.bins, low)
    return Coverage(unready / count, float(unready[:few].sum() / count[:few].sum()))


def stored_coverage(order: Order) -> dict[str, Any]:
    """The support of what is stored, apart from what is selected: how many cells there are, and the shares of them
    with any evidence and with enough of it."""
    support = order.table().support
    seen, ready = (support > 0).double().mean(), (support >= max(order.gate.ready, 1e-12)).double().mean()
    return {"stored": {"cells": len(support), "seen": round(float(seen), 5), "ready": round(float(ready), 5)}}


def settled_share(stats: Stats, table: Table) -> float:
    """Share of a table's evidence that lies in cells whose value is larger than its radius (δ = DELTA)."""
    events = stats.sums[0]
    settled = table.value.abs() > radius(stats, DELTA)
    return float(events[settled].sum() / events.sum().clamp(min=1e-300))


def differing(rollout: Rollout, other: Rollout) -> Tensor:
    """[N] bool: the problems whose outputs are not exactly the same."""
    return (rollout.tokens != other.tokens).any(1)


def terminal_sensitivity(rollouts: Mapping[str, Rollout]) -> Sensitivity:
    """Compare the outputs of all orders exactly."""
    outputs = list(rollouts.values())
    if not outputs:
        raise ValueError("rollouts is empty: expected one for every order")
    distinct = torch.zeros(len(outputs[0].tokens), dtype=torch.float64)
    for index, rollout in enumerate(outputs):
        fresh = torch.ones(len(distinct), dtype=torch.bool)
        for earlier in outputs[:index]:
            fresh &= differing(rollout, earlier)
        distinct += fresh
    return Sensitivity(float((distinct == 1).double().mean()), float(distinct.mean()))


def progress_of(step_map: Tensor) -> Tensor:
    """[N,L] float64: which share of its row's reveals came in earlier steps than each; 0 where given."""
    step = step_map.long()
    columns = torch.zeros(len(step), int(step.max()) + 1 if step.numel() else 1, dtype=torch.float64)
    count = columns.scatter_add(1, step, torch.ones_like(step, dtype=torch.float64))
    count[:, 0] = 0
    earlier = count.cumsum(1) - count
    return earlier.gather(1, step) / count.sum(1, keepdim=True).clamp(min=1)


def listed(column: Tensor) -> list[float | None]:
    """Plain numbers for JSON, None for NaN."""
    return [None if value != value else round(value, 5) for value in column.tolist()]


def _revealed(rollout: Rollout, bins: int) -> tuple[Tensor, Tensor]:
    """[N,L] bool, which positions were revealed, and [n] their confidence bins."""
    check_count("bins", bins, 1)
    revealed = (rollout.step_map > 0) & ~rollout.confidence.isnan()
    return revealed, (rollout.confidence[revealed] * bins).long().clamp(0, bins - 1)


def _low_bins(bins: int, low: float) -> int:
    """How many bins lie wholly below a confidence."""
    return int(check_number("low", low, 0, 1) * bins + 1e-9)
