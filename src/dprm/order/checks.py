"""Errors at the public door: every message names the argument, the row and the value.

Values can only be looked at where that costs nothing. On the CPU every public call checks its tensors; on an
accelerator a look would stop the device, so only shapes and types are checked there, and `dprm.decode` looks once, at
its end.
"""

import math
import operator

import torch
from torch import Tensor


def can_look(tensor: Tensor) -> bool:
    """Whether reading a value of this tensor is free (it would synchronise an accelerator)."""
    return tensor.device.type == "cpu"


def fail_at(name: str, tensor: Tensor, bad: Tensor, want: str) -> None:
    """Raise ValueError naming the first place where `bad` [same shape as tensor] is true."""
    if not bool(bad.any()):
        return
    place = [int(i) for i in bad.nonzero()[0]]
    labels = ["row", "position", "token"]
    where = ", ".join(f"{label} {index}" for label, index in zip(labels, place, strict=False))
    raise ValueError(f"{name}[{where}] is {tensor[tuple(place)].item()}: {want}")


def check_shape(name: str, tensor: Tensor, shape: tuple[int, ...], meaning: str) -> None:
    """Raise unless `tensor` has exactly this shape."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is {type(tensor).__name__}: expected a tensor {meaning}")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: expected {shape}, {meaning}")


def check_integer(name: str, tensor: Tensor) -> None:
    """Raise unless `tensor` holds integers (booleans are not)."""
    if tensor.dtype == torch.bool or tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        raise TypeError(f"{name} has type {tensor.dtype}: expected integers")


def check_bounds(name: str, tensor: Tensor, low: float, high: float, want: str) -> None:
    """Raise unless every value lies in [low, high]; NaN lies nowhere. Not called on accelerators."""
    if tensor.numel() and can_look(tensor):
        fail_at(name, tensor, ~((tensor >= low) & (tensor <= high)), want)


def check_number(name: str, value: float, low: float, high: float = math.inf, *, open_low: bool = False) -> float:
    """Return `value` as a float, or raise unless low ≤ value ≤ high (low < value with `open_low`)."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise ValueError(f"{name} is {value}: no tensor holds a whole number of 64 bits or more")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}: expected a number") from None
    too_low = number <= low if open_low else number < low
    if not math.isfinite(number) or too_low or number > high:
        left = "(" if open_low else "["
        raise ValueError(f"{name} is {value!r}: expected a finite number in {left}{low:g}, {high:g}]")
    return number


def check_count(name: str, value: int, low: int) -> int:
    """Return `value`, or raise unless it is a whole number ≥ low."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}: expected a whole number")
    number = operator.index(value)
    if number < low:
        raise ValueError(f"{name} is {number}: expected at least {low}")
    return number


def check_one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    """Return `value`, or raise unless it is one of the known names."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}: expected one of {', '.join(known)}")
    return value


def check_shortlist(shortlist: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return (least, most, per position), or raise unless 1 ≤ least ≤ most and 1 ≤ per position."""
    try:
        least, most, per = shortlist
    except (TypeError, ValueError):
        raise TypeError(f"shortlist is {shortlist!r}: expected (least, most, per position)") from None
    check_count("shortlist[0]", least, 1)
    check_count("shortlist[1]", most, least)
    check_count("shortlist[2]", per, 1)
    return least, most, per


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
        check_bounds("progress", progress, 0.0, 1.0, "expected a share in [0, 1], 1 where a row has nothing to reveal")
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
