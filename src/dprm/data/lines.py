"""A person's text file, one problem a line: what can be read of it, and why the rest is left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar

Read = TypeVar("Read", bound=Hashable)


def read_lines(path: Path, parse: Callable[[str], Read]) -> tuple[list[Read], list[str]]:
    """What `parse` gives for every line that is not blank, and one line for each that is left out.

    Args:
        parse: raises ValueError, TypeError or KeyError where a line is no problem; equal results are one problem.
    """
    try:
        # Some editors begin a file with a byte order mark.
        text = path.read_text(encoding="utf-8-sig")
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
                said = f"there is no {error}" if isinstance(error, KeyError) else str(error)
                left_out.append(f"line {number}: {said[:200]}")
    return list(first), left_out
