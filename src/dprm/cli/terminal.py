"""The one way from a command to the terminal: what comes from hosts and files is shown, and cannot act.

Names, lines and file contents may hold sequences that move the cursor, colour, retitle or turn text; they are written
out (see `report.visible`). Colours of our own are put in by rich, after that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from dprm.report.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

# Where a table is piped into a file there is no window that it must fit.
_PIPED = 160
# Of JSON only what its own escapes leave: C1 controls, marks of direction, unpaired surrogates.
_PLAIN = re.compile(r"[\n\x20-\x7e]+")


def visible_lines(text: str) -> str:
    """The text with acting characters written out, but for its line breaks."""
    return "\n".join(map(visible, text.split("\n")))


def say(text: str, err: bool = False) -> None:
    """A line, or several, to standard output or standard error."""
    typer.echo(visible_lines(text), err=err)


def say_json(text: str) -> None:
    """JSON to standard output; acting characters become escapes, so that it reads back to the same data."""
    typer.echo("".join(character if _shows(character) else _escaped(character) for character in text))


def _shows(character: str) -> bool:
    return bool(_PLAIN.match(character)) or visible(character) == character


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def terminal(err: bool = False, **settings: Any) -> Console:
    """A rich console on which text cannot act."""
    from rich.console import Console
    from rich.segment import Segment

    class Terminal(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **options):
                shown = segment if segment.control else segment._replace(text=visible_lines(segment.text))
                yield shown

    console = Terminal(stderr=err, **settings)
    if not console.is_terminal and "COLUMNS" not in os.environ and "width" not in settings:
        console.width = _PIPED
    return console
