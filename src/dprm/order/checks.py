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
