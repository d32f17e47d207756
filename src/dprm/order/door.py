"""The door of `Order.select`: everything about a decision is checked here, once, and trusted afterwards."""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.order.checks import can_look, check_bounds, check_count, check_integer, check_shape, fail_at


def check_decision(
    confidence: Tensor,
    candidates: Tensor,
    budget: int | Tensor,
    progress: float | Tensor,
    aux: Tensor | None,
    seed: int | Tensor | None,
    aux_states: int,
) -> tuple[int | Tensor, int, float, float]:
    """Validate at the door.

    Returns:
        the budget (tensors on the device of the reading), its largest value, and the lowest and the highest confidence
        (0 and 1 where a look would cost a sync).
    """
    rows, length = confidence.shape
    if candidates.shape != confidence.shape or candidates.dtype != torch.bool:
        check_shape("candidates", candidates, (rows, length), "one flag a position")
        raise TypeError(f"candidates has type {candidates.dtype}: expected bool")
    if candidates.device != confidence.device:
        raise ValueError(f"candidates is on {candidates.device}, the reading on {confidence.device}")
    low, high = 0.0, 1.0
    if confidence.numel() and can_look(confidence):
        lowest, highest = torch.aminmax(confidence)
        low, high = lowest.item(), highest.item()
        if not (low >= 0.0 and high <= 1.0):
            wrong = ~((confidence >= 0) & (confidence <= 1))
            fail_at("confidence", confidence, wrong & candidates, "a probability lies in [0, 1]")
            fail_at("confidence", confidence, wrong, "a probability lies in [0, 1], also where it is no candidate")
    if isinstance(progress, Tensor):
        check_shape("progress", progress, (rows,), "one number a row")
        check_bounds("progress", progress, 0.0, 1.0, "expected a share in [0, 1]")
    elif not 0.0 <= progress <= 1.0:
        raise ValueError(f"progress is {progress}: expected a share in [0, 1]")
    if aux is not None:
        check_shape("aux", aux, (rows, length), "one state a position")
        check_integer("aux", aux)
        check_bounds("aux", aux, 0, aux_states - 1, f"this Order has aux = {aux_states} states")
    if isinstance(seed, Tensor):
        check_shape("seed", seed, (rows,), "one seed a row")
        check_integer("seed", seed)
    elif seed is not None:
        check_count("seed", seed, -(2**63))
    if isinstance(budget, Tensor) and budget.dim() == 0:
        budget = budget.expand(rows)
    if not isinstance(budget, Tensor):
        return check_count("budget", budget, 0), min(budget, length), low, high
    check_shape("budget", budget, (rows,), "one budget a row")
    check_integer("budget", budget)
    check_bounds("budget", budget, 0, torch.iinfo(budget.dtype).max, "a budget is not negative")
    # A budget that lives on an accelerator is not looked at: every length is then possible.
    most = (min(int(budget.max()), length) if rows else 0) if can_look(budget) else length
    return budget.to(confidence.device, torch.int64, non_blocking=True).clamp(max=length), most, low, high
