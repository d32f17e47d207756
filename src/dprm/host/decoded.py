"""Decode problems in several ways, and nothing else: finished batches are kept, judged answers are returned.

What is kept belongs to a host, to problems, to a way and to a seed; change anything that could change an answer and it
is decoded anew. Rows a batch, device and the engine that does the work may change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dprm.data.underway import tell
from dprm.decode.loop import Model
from dprm.host.engine import Engine
from dprm.host.host import Host, Problems
from dprm.host.identity import host_word, word
from dprm.host.rollout import Decode, Rollout, Way
from dprm.order.files import claim, read_tensors, write_tensors

_KIND = "dprm.rollout"
# Seconds of work that a kill may cost.
_SAVED_EVERY = 2.0


def decoded(
    host: Host,
    problems: Problems,
    ways: Mapping[str, Way],
    *,
    seed: int = 0,
    rows: int = 64,
    folder: Path | None = None,
    on: Engine | None = None,
    on_batch: Callable[[str, int], None] | None = None,
) -> dict[str, Rollout]:
    """The answers to all problems, in every way.

    Args:
        rows: problems decoded together. folder: where finished batches are kept; None keeps none.
        on: the engine that does the work; None: this process. All batches of all ways are given to it at once.
        on_batch: called with (name of the way, problems done).
    """
    if not len(problems):
        raise ValueError("problems is empty: there is nothing to decode")
    problems.check()
    if folder is not None:
        claim(folder)
    owner = None if folder is None else word(host_word(host), problems.key)
    underway = {}
    for name, way in ways.items():
        # An order does not look at the reward while it decodes; the best of several paths, say, does.
        wanted = None if isinstance(way, Decode) else host.preference
        identity = word(owner, wanted, way.spec(), seed)
        file = None if folder is None else folder / f"{plain_name(name)}-{identity}.rollout"
        underway[name] = _Underway(name, identity, file, len(problems))
    left = [(each, start) for each in underway.values() for start in range(each.done, len(problems), rows)]
    works = {name: _Answer(way, seed) for name, way in ways.items()}

    def pieces() -> Iterator[tuple[_Answer, Problems]]:
        for each, start in left:
            if on is None:
                tell(each.name, each.done, each.count)
            yield works[each.name], problems[start : start + rows]

    for (each, _), rollout in zip(left, _here(host, pieces()) if on is None else on.each(host, pieces()), strict=True):
        each.add(rollout)
        if on_batch is not None:
            on_batch(each.name, each.done)
    return {name: Rollout.joined(each.parts) for name, each in underway.items()}


def plain_name(name: str) -> str:
    """The name of a way, as a file can be called."""
    return re.sub(r"[^\w ,.=@-]", "_", name)


def _here(host: Host, pieces: Iterable[tuple[_Answer, Problems]]) -> Iterator[Rollout]:
    model = host.model()
    return (work(host, model, problems) for work, problems in pieces)


@dataclass(frozen=True)
class _Answer:
    """A piece of work: answer some problems."""

    way: Way
    seed: int

    def __call__(self, host: Host, model: Model, problems: Problems) -> Rollout:
        return self.way.answer(host, problems, self.seed, model)


@dataclass
class _Underway:
    """The answers to `count` problems in one way, as far as there are any; begins with those that a file has."""

    name: str
    identity: str
    file: Path | None
    count: int
    parts: list[Rollout] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.file is not None:
            self.parts = _read(self.file, self.identity)
        self.saved = time.monotonic()

    @property
    def done(self) -> int:
        return sum(map(len, self.parts))

    def add(self, rollout: Rollout) -> None:
        """The answers to the next problems."""
        self.parts.append(rollout)
        finished = self.done == self.count
        if self.file is not None and (finished or time.monotonic() - self.saved > _SAVED_EVERY):
            self.parts = [Rollout.joined(self.parts)]
            write_tensors(self.file, self.parts[0].tensors(), {"kind": _KIND, "of": self.identity})
            self.saved = time.monotonic()


def _read(file: Path, identity: str) -> list[Rollout]:
    if not file.is_file():
        return []
    tensors, header = read_tensors(file, _KIND)
    return [Rollout.from_tensors(tensors)] if header["of"] == identity else []
