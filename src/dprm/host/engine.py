"""Where pieces of work are done: in this process, or by workers elsewhere.

A piece is a pure function of a host, its model and some problems: who does it, when, and how often cannot change its
bits. So an engine may lose pieces, do them twice and get them back in any order, as long as it hands over each once, in
the order they were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, Self, TypeVar

from dprm.decode.loop import Model
from dprm.host.host import Host, Problems

Result = TypeVar("Result")
Work = Callable[[Host, Model, Problems], Result]
Load = Callable[[], Host]


class Engine(Protocol):
    """Does pieces of work."""

    def each(self, host: Host, pieces: Iterable[tuple[Work[Result], Problems]]) -> Iterator[Result]:
        """The result of every piece, in the order of the pieces."""

    def of(self, load: Load) -> Self:
        """The same engine for a host that workers make by `load`, where they cannot be sent the one that is here."""


class Serial:
    """One piece after the other, in this process."""

    def __init__(self) -> None:
        self._last: tuple[Host, Model] | None = None

    def each(self, host: Host, pieces: Iterable[tuple[Work[Result], Problems]]) -> Iterator[Result]:
        for work, problems in pieces:
            if self._last is None or self._last[0] is not host:
                self._last = host, host.model()
            yield work(host, self._last[1], problems)

    def of(self, load: Load) -> Self:
        return self
