"""Progress of a command on standard error: a bar for everything that is under way, plain lines where it is piped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dprm.cli.terminal import say, terminal
from dprm.data.underway import STEP, listening

Show = Callable[[str, int, int | None], None]
# Least seconds between two plain lines.
_QUIET_FOR = 5.0


@contextmanager
def bars() -> Iterator[Show]:
    """A function to call with (what is being done, how far, of how much); it hears of steps in a batch by itself."""
    console = terminal(err=True)
    if not console.is_terminal:
        show = lines()
        with listening(show):
            yield show
        return
    from rich.markup import escape
    from rich.progress import Progress, TaskID

    with Progress(console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}
        furthest: dict[str, int] = {}
        last = "decoding"

        def shown(what: str, done: int, total: int | None) -> None:
            nonlocal last
            if what == STEP and last in tasks:
                progress.update(tasks[last], description=f"{escape(last)} · step {done:,}")
                return
            last = what
            if done < furthest.get(what, 0):  # A batch that begins counts its own seed alone.
                return
            furthest[what] = done
            if what not in tasks:
                tasks[what] = progress.add_task(escape(what), total=total)
            progress.update(tasks[what], description=escape(what), completed=done, total=total)

        with listening(shown):
            yield shown


def lines() -> Show:
    """Progress as plain lines, one in five seconds: what is done, and the step of the batch that is under way."""
    said, last = time.monotonic(), ""
    furthest: dict[str, tuple[int, int | None]] = {}

    def show(what: str, done: int, total: int | None) -> None:
        nonlocal said, last
        if what == STEP:
            told = f"{last}, step {done:,} of a batch" if last else f"step {done:,} of a batch"
        else:
            # A batch that begins counts its own seed alone.
            done, total = furthest[what] = max(furthest.get(what, (0, total)), (done, total), key=lambda at: at[0])
            told = last = f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}"
        now = time.monotonic()
        if now - said >= _QUIET_FOR:
            said = now
            say(told, err=True)

    return show
