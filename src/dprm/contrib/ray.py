"""Ray: pieces of work spread over actors, on one machine or many, to the bits of one process.

An actor makes the host and its model once. It is handed at most two pieces at a time, and pieces no further than a
window ahead of the oldest result that is missing: so the driver never holds more than a window of results that nobody
has taken. Results are taken by the number of their piece, whatever order they arrive in. A piece whose actor dies goes
to another one, and a new actor comes in its place as soon as there is one for it; that a piece may be done twice
changes nothing.
Ray sends functions and results in a form that can run code: workers must be trusted, as must whoever reaches a cluster.
"""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

# Before Ray is imported: it asks nobody over the network how it is used.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

from dprm.contrib.ray_actors import Actors
from dprm.host.engine import Load, Result, Work
from dprm.host.host import Host, Problems
from dprm.order.checks import check_count

# Pieces handed to an actor at a time; pieces ahead of the oldest missing result, for every actor.
HANDED, WINDOW = 2, 8


@dataclass
class _Piece:
    number: int
    work: Any
    problems: Problems
    tries: int = 0


class Ray:
    """An engine of actors.

    Args:
        workers: actors, each with a model of its own.
        address: of a running cluster, or "auto"; None: one is started on this machine.
        gpus, cpus: that an actor asks for.
        tries: how often a piece may be lost with its actor.
        load: makes the host in an actor; None: the host that is here is sent.
        on_wait: told what is waited for, such as other work on the cluster; None: a warning.
    """

    def __init__(
        self,
        workers: int,
        address: str | None = None,
        *,
        gpus: float = 0.0,
        cpus: float = 1.0,
        tries: int = 5,
        load: Load | None = None,
        on_wait: Callable[[str], None] | None = None,
    ):
        self.workers, self.tries, self.load = check_count("workers", workers, 1), tries, load
        # Shared by all that `of` gives.
        self._actors = Actors(workers, address, gpus, cpus, on_wait)

    def of(self, load: Load) -> Self:
        other = copy.copy(self)
        other.load = load
        return other

    def each(self, host: Host, pieces: Iterable[tuple[Work[Result], Problems]]) -> Iterator[Result]:
        """The result of every piece, in the order of the pieces.

        Raises:
            ValueError: a worker has another host than this process, the cluster is too small, or a piece was lost too
            often.
        """
        left = iter(pieces)
        first = next(left, None)
        if first is None:
            return
        self._actors.start(host, self.load)
        change = ray.put((host.decoding, host.preference))
        works: dict[int, tuple[Any, Any]] = {}
        again: deque[_Piece] = deque()
        running: dict[Any, tuple[_Piece, Any]] = {}
        arrived: dict[int, Result] = {}
        asked = taken = 0
        fresh: tuple[Work[Result], Problems] | None = first
        while fresh is not None or again or running or arrived:
            busy = [actor for _, actor in running.values()]
            for actor in sorted(self._actors.alive, key=busy.count):
                while busy.count(actor) < HANDED and (again or fresh is not None):
                    if not again:
                        if fresh is None or asked >= taken + WINDOW * self.workers:
                            break
                        work, problems = fresh
                        # Sent once, however many pieces are made of it; kept, so that its number stays its own.
                        sent = works.setdefault(id(work), (work, ray.put(work)))[1]
                        again.append(_Piece(asked, sent, problems))
                        asked, fresh = asked + 1, next(left, None)
                    piece = again.popleft()
                    running[actor.do.remote(change, piece.work, piece.problems)] = piece, actor
                    busy.append(actor)
            ready = self._actors.first_ready(running) if running or not self._actors.alive else None
            if ready is not None:
                piece, actor = running.pop(ready)
                try:
                    arrived[piece.number] = ray.get(ready)
                except ray.exceptions.RayTaskError as error:
                    # What the work itself raised, as it would have been raised here.
                    raise error.cause if isinstance(error.cause, Exception) else error from None
                except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                    if piece.tries + 1 >= self.tries:
                        remedy = "its workers die of it, perhaps for want of memory: take fewer --rows or --workers"
                        raise ValueError(f"piece {piece.number} was lost {self.tries} times; {remedy}") from error
                    again.append(replace(piece, tries=piece.tries + 1))
                    self._actors.replace(actor)
            while taken in arrived:
                yield arrived.pop(taken)
                taken += 1

    def close(self) -> None:
        """End the actors."""
        self._actors.close()
