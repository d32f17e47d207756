"""Progress of a command on standard error: a bar for everything that is under way, plain lines where it is piped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

Show = Callable[[str, int, int | None], None]
# Least seconds between two plain lines.
_QUIET_FOR = 10.0


@contextmanager
def bars() -> Iterator[Show]:
    """A function to call with (what is being done, how far, of how much)."""
    from rich.console import Console
    from rich.progress import Progress, TaskID

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    with Progress(console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield show


def _lines() -> Show:
    last: dict[str, float] = {}

    def show(what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - last.setdefault(what, now) >= _QUIET_FOR:
            last[what] = now
            typer.echo(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}", err=True)

    return show


# Where a table is piped into a file there is no window that it must fit.
_PIPED = 160


def table_console() -> Console:
    """For tables on standard output: as wide as the terminal, or wide enough where there is none."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=_PIPED)
