"""The exact verifier of word problems.

    1     well formed, and the final number is the right one: what is asked of GSM8K answers
    0.1   well formed: any number of steps `a∘b=c;`, then `#` and a number, but not the right one
    0     anything else

Whether the way there is right too is a second judgement, `steps_right`: there is at least one step, every step is
arithmetically right, every operand is a number of the problem or an earlier result, and the final number is the last
result. Numbers of the problem include those its words imply: 2 for half, 7 for a week, 12 for a dozen.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from dprm.data.arithmetic import MALFORMED, SOLVED, WELL_FORMED, apply

_NUMBER = r"(0|[1-9][0-9]{0,2})"
_STEP = re.compile(rf"{_NUMBER}([-+*/]){_NUMBER}={_NUMBER}")
_FINAL = re.compile(rf"#{_NUMBER}")


class Verdict(NamedTuple):
    """The reward, in words what is wrong (empty when solved by right steps), and whether all steps are right."""

    reward: float
    reason: str
    steps_right: bool


def verify(numbers: Collection[int], answer: int, text: str) -> Verdict:
    """Judge an answer to a problem.

    Args:
        numbers: those of the problem. answer: the right one.
    """
    *steps, last = text.split(";")
    parsed = [_STEP.fullmatch(step) for step in steps]
    for index, match in enumerate(parsed):
        if match is None:
            return Verdict(MALFORMED, f"step {index + 1} is not of the form a+b=c: {steps[index]!r}", False)
    final = _FINAL.fullmatch(last)
    if final is None:
        return Verdict(MALFORMED, f"the end is not of the form #n: {last!r}", False)
    wrong = _first_wrong(numbers, [match.groups() for match in parsed if match], int(final[1]))
    if int(final[1]) != answer:
        return Verdict(WELL_FORMED, wrong or f"the final number is {final[1]}, not {answer}", not wrong)
    return Verdict(SOLVED, wrong, not wrong)


def _first_wrong(numbers: Collection[int], steps: list[tuple[str, ...]], final: int) -> str:
    """What is wrong with the way to the final number; empty if nothing is."""
    known, result = set(numbers), None
    for left, operator, right, claimed in steps:
        step = f"{left}{operator}{right}={claimed}"
        result = apply(int(left), operator, int(right))
        if result != int(claimed):
            return f"{step} is wrong"
        for operand in (int(left), int(right)):
            if operand not in known:
                return f"{step} uses {operand}, which is neither given nor a result"
        known.add(result)
    if result is None:
        return "there is no step"
    return "" if result == final else f"the final number {final} is not the last result {result}"
