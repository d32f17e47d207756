"""Progress of a command on standard error: a bar for everything that is under way, plain lines where it is piped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dprm.cli.terminal import say, terminal

Show = Callable[[str, int, int | None], None]
# Least seconds between two plain lines.
_QUIET_FOR = 10.0


@contextmanager
def bars() -> Iterator[Show]:
    """A function to call with (what is being done, how far, of how much)."""
    from rich.markup import escape
    from rich.progress import Progress, TaskID

    console = terminal(err=True)
    if not console.is_terminal:
        yield _lines()
        return
    with Progress(console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(escape(what), total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield show


def _lines() -> Show:
    last: dict[str, float] = {}

    def show(what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - last.setdefault(what, now) >= _QUIET_FOR:
            last[what] = now
            say(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}", err=True)

    return show
