"""Progress of a long command: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TextIO


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

    def __enter__(self) -> Progress:
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
        if self._bar is not None:
            self._bar.stop()

    def show(self, step: int, steps: int | None, **facts: float) -> None:
        """The state after `step` of `steps`; may be left out when lines come too fast."""
        if self.quiet:
            return
        text = "  ".join(f"{name} {value:.4g}" for name, value in facts.items())
        if self._bar is not None:
            self._bar.update(self._task, completed=step, total=steps, facts=text)
        elif time.monotonic() - self._last >= self.quiet_for or step == steps:
            self._last = time.monotonic()
            print(f"{self.title}  {step}/{steps or '?'}  {text}", file=self.stream, flush=True)

    def say(self, line: str) -> None:
        """A line that stays."""
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.console.print(f"{self.title}  {line}")
        else:
            print(f"{self.title}  {line}", file=self.stream, flush=True)
