"""What a page is made of: sections with figures and tables, in plain data; the template turns them into HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class Figure:
    """A chart as SVG, with what it shows in words."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Table:
    """Numbers beside a chart.

    Attributes:
        colours: by text, the colour of the order it names. folded: opened on demand, and in print.
        words: cells are text more than numbers.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    colours: dict[str, str] = field(default_factory=dict)
    folded: bool = True
    words: bool = False


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, figures and tables; `replay` is the data of a replay where there is one."""

    title: str
    lead: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    replay: dict[str, Any] | None = None


@dataclass(frozen=True)
class Article:
    """Everything about one run.

    Attributes:
        facts: what it is, as label and text. verdict: the words, the reason and the evidence, where there is one.
        conclusion: what a study found, in a sentence.
        provenance: what is needed to run it again, as label and text.
    """

    title: str
    kind: str
    facts: dict[str, str]
    sections: list[Section]
    provenance: dict[str, str]
    verdict: dict[str, Any] | None = None
    conclusion: str = ""
