"""The exact Countdown verifier.

    1     every step is right and uses values that are available, all numbers are used, the last result is the target
    0.1   well formed: one or more steps `a∘b=c` of whole numbers, separated by commas, but not all of the above
    0     anything else

A value is available if it is one of the given numbers or an earlier result, and has not been used yet. Results are
whole numbers from 0 to 9,999.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dprm.data.arithmetic import MALFORMED, SOLVED, WELL_FORMED, apply

_NUMBER = r"(0|[1-9][0-9]{0,3})"
_STEP = re.compile(rf"{_NUMBER}([-+*/]){_NUMBER}={_NUMBER}")


class Verdict(NamedTuple):
    """The reward, and in words what is wrong (empty when solved)."""

    reward: float
    reason: str


def verify(numbers: Sequence[int], target: int, text: str) -> Verdict:
    """Judge a response to a problem."""
    parsed = [_STEP.fullmatch(step) for step in text.split(",")]
    for index, match in enumerate(parsed):
        if match is None:
            return Verdict(MALFORMED, f"step {index + 1} is not of the form a+b=c: {text.split(',')[index]!r}")
    available = Counter(numbers)
    result = None
    for match in parsed:
        assert match is not None
        left, operator, right, claimed = match.groups()
        result = apply(int(left), operator, int(right))
        if result != int(claimed):
            return Verdict(WELL_FORMED, f"{match.group()} is wrong")
        for operand in (int(left), int(right)):
            if not available[operand]:
                return Verdict(WELL_FORMED, f"{match.group()} uses {operand}, which is not available")
            available[operand] -= 1
        available[result] += 1
    left_over = sorted((+available).elements())
    if left_over != [result]:
        return Verdict(WELL_FORMED, f"values {left_over} are left, expected the last result alone")
    if result != target:
        return Verdict(WELL_FORMED, f"the result is {result}, not {target}")
    return Verdict(SOLVED, "")
