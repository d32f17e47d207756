"""Numbers as people read them: an estimate with its interval, a dash for what there is not, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTHING = "–"


def with_interval(estimate: float | None, low: float | None, high: float | None, form: str = "+.3f") -> str:
    """`+0.030 [+0.010, +0.050]`; without the interval where there is none."""
    if estimate is None:
        return NOTHING
    return f"{estimate:{form}}" if low is None or high is None else f"{estimate:{form}} [{low:{form}}, {high:{form}}]"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))


def number(value: float | None, form: str = ".3f") -> str:
    """One number."""
    return NOTHING if value is None else f"{value:{form}}"
