"""One colour for each order, the same everywhere on a page; the style sheet says what it is by day and by night."""

from __future__ import annotations

from collections.abc import Iterable

from dprm.evaluate.card import Card
from dprm.evaluate.study import Study
from dprm.report.runs import Run

COUNT = 10


def order_colours(runs: Iterable[Run]) -> dict[str, str]:
    """A CSS colour for every order and training arm of the runs; references come first and are neutral."""
    contents = [run.content for run in runs]
    references = [content.reference for content in contents if isinstance(content, Card)]
    named = [name for content in contents if isinstance(content, Card | Study) for name in content.arms]
    orders = [
        entry["order"]
        for content in contents
        if isinstance(content, Study)
        for entry in content.results
        if "order" in entry
    ]
    names = dict.fromkeys([*references, *named, *orders])
    # Where there are more names than colours they come round again, but never as the neutral one.
    return {name: f"var(--order-{_place(index)})" for index, name in enumerate(names)}


def _place(index: int) -> int:
    return 0 if index == 0 else 1 + (index - 1) % (COUNT - 1)
