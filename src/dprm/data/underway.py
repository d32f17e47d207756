"""Work that takes long tells how far it is; whoever shows progress listens, and nobody has to.

Told are steps of a decoding and rounds of preparing data: what moves inside a batch, where results alone would show
nothing for minutes. Only work in this process is heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Tell = Callable[[str, int, int | None], None]
# What the steps of a decoding are told as.
STEP = "step"
_listener: ContextVar[Tell | None] = ContextVar("underway", default=None)


def tell(what: str, done: int, total: int | None = None) -> None:
    """Say what is under way, how far it is, and of how much."""
    if (heard := _listener.get()) is not None:
        heard(what, done, total)


@contextmanager
def listening(to: Tell) -> Iterator[None]:
    """Have a function called with everything that is told meanwhile."""
    token = _listener.set(to)
    try:
        yield
    finally:
        _listener.reset(token)
