"""What a figure of a report has drawn."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element


def groups(figure, kind: str) -> list[Element]:
    """The groups of marks of one kind (`mark-symbol`, `mark-rule`, …), from the bottom up; legends come last."""
    return [group for group in ElementTree.fromstring(figure.svg).iter("g") if group.get("class") == kind]


def across(mark: Element) -> float:
    """How far to the right of its group a mark stands."""
    return _moved(mark)[0]


def down(mark: Element) -> float:
    """How far below the top of its group a mark stands."""
    return _moved(mark)[1]


def _moved(mark: Element) -> tuple[float, float]:
    moved = re.match(r"translate\(([-\d.]+),([-\d.]+)\)", mark.get("transform", ""))
    return (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)


def words(figure) -> list[str]:
    """Every text of a figure."""
    return [text.text or "" for text in ElementTree.fromstring(figure.svg).iter("text")]
