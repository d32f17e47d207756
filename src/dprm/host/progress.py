"""Progress of a long command: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TextIO

from dprm.data.underway import listening


class Progress:
    """Shows how far a training is, its loss and its rate.

    Args:
        title: shown first.
        stream: where to; None: standard error. A terminal gets a bar, if `rich` is installed.
        quiet_for: least seconds between two plain lines. quiet: say nothing at all.
    """

    def __init__(self, title: str, stream: TextIO | None = None, quiet_for: float = 5.0, quiet: bool = False):
        self.title, self.stream, self.quiet_for = title, stream or sys.stderr, quiet_for
        self.quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._last = float("-inf")
        self._text = ""
        self._state: tuple[int, int | None] = (0, None)
        self._ear: Any = None

    def __enter__(self) -> Progress:
        self._ear = listening(self._hear)
        self._ear.__enter__()
        if self.stream.isatty() and not self.quiet:
            try:
                from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
                from rich.progress import Progress as Bar
            except ImportError:  # A machine for training only may not have it.
                return self
            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
            self._bar = Bar(*columns, TextColumn("{task.fields[facts]}"), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=None, facts="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ear.__exit__(kind, error, traceback)
        if self._bar is not None:
            self._bar.stop()

    def _hear(self, what: str, done: int, total: int | None) -> None:
        """What a step of the training waits for: a decoding, or data."""
        before, self._text = self._text, f"{what} {done:,}" + (f" of {total:,}" if total else "")
        self._put(*self._state, quiet=True)
        self._text = before

    def show(self, step: int, steps: int | None, **facts: float) -> None:
        """The state after `step` of `steps`; may be left out when lines come too fast. No facts: those of last time."""
        if facts:
            self._text = "  ".join(f"{name} {value:.4g}" for name, value in facts.items())
        self._state = step, steps
        self._put(step, steps, quiet=step != steps)

    def _put(self, step: int, steps: int | None, quiet: bool) -> None:
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=step, total=steps, facts=self._text)
        elif not quiet or time.monotonic() - self._last >= self.quiet_for:
            self._last = time.monotonic()
            print(f"{self.title}  {step}/{steps or '?'}  {self._text}", file=self.stream, flush=True)

    def say(self, line: str) -> None:
        """A line that stays."""
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.console.print(f"{self.title}  {line}")
        else:
            print(f"{self.title}  {line}", file=self.stream, flush=True)
