"""Ctrl-C while something must not be left half done: it is noted, and acted on between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """A function that says whether somebody asked to stop: Ctrl-C, or SIGTERM as cluster schedulers send it.

    A second request is not waited with. Outside of the main thread signals go their usual way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
