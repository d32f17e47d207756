"""How hard problems should be, in the words of a command: one whole number or a range, such as `5` or `22-25`."""

from __future__ import annotations

import re


def whole_range(difficulty: str, what: str, least: int, most: int) -> tuple[int, int]:
    """First and last of the numbers that a difficulty names.

    Args:
        what: of what, for the message. least, most: the bounds of both.
    """
    match = re.fullmatch(r"\s*([0-9]{1,4})(?:\s*-\s*([0-9]{1,4}))?\s*", difficulty)
    if match is not None:
        first, last = int(match[1]), int(match[2] or match[1])
        if least <= first <= last <= most:
            return first, last
    raise ValueError(
        f"difficulty is {difficulty!r}: expected {what}, {least} to {most}, as one number or as FIRST-LAST"
    )
