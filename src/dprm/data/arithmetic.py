"""Arithmetic that is written out step by step: what a step gives, and what an answer made of steps earns."""

from __future__ import annotations

SOLVED, WELL_FORMED, MALFORMED = 1.0, 0.1, 0.0
LARGEST_VALUE = 9_999


def apply(left: int, operator: str, right: int) -> int | None:
    """left ∘ right, or None where it is not a whole number from 0 to 9,999."""
    if operator == "/":
        result = left // right if right and left % right == 0 else None
    else:
        result = {"+": left + right, "-": left - right, "*": left * right}[operator]
    return result if result is not None and 0 <= result <= LARGEST_VALUE else None
