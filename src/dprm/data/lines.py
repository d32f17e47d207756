"""A person's text file, one problem a line: what can be read of it, and why the rest is left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

from dprm.order.files import read_whole

Read = TypeVar("Read", bound=Hashable)
# Of what is left out, how many lines a message lists, and how much of each.
_LISTED, SAID = 5, 200


def read_lines(path: Path, parse: Callable[[str], Read]) -> tuple[list[Read], list[str]]:
    """What `parse` gives for every line that is not blank, and one line for each that is left out.

    Args:
        parse: raises ValueError, TypeError or KeyError where a line is no problem; equal results are one problem.

    Raises:
        ValueError: no line is a problem; the message has the first of those that are left out.
    """
    try:
        # Some editors begin a file with a byte order mark.
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None
    first: dict[Read, int] = {}
    left_out = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                problem = parse(line.strip())
                if first.setdefault(problem, number) != number:
                    raise ValueError(f"the problem of line {first[problem]} again")
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
                left_out.append(f"line {number}: {reason[:SAID]}")
    if not first:
        raise nothing_left(path, left_out)
    return list(first), left_out


def nothing_left(path: Path, left_out: Sequence[str]) -> ValueError:
    """The error of a file without a problem, with what was left out of it."""
    samples = [line[:SAID] for line in left_out[:_LISTED]]
    more = [f"and {len(left_out) - _LISTED} more"] if len(left_out) > _LISTED else []
    return ValueError(f"{path} holds no problem that can be used: {'; '.join([*samples, *more]) or 'it is empty'}")
