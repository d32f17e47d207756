"""Ray: pieces of work spread over actors, on one machine or many, to the bits of one process.

An actor makes the host and its model once. It is handed at most two pieces at a time, and pieces no further than a
window ahead of the oldest result that is missing: so the driver never holds more than a window of results that nobody
has taken. Results are taken by the number of their piece, whatever order they arrive in. A piece whose actor dies goes
to another one, and a new actor comes in its place; that a piece may be done twice changes nothing.
Ray sends functions and results in a form that can run code: workers must be trusted, as must whoever reaches a cluster.
"""

from __future__ import annotations

import copy
import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

# Before Ray is imported: it asks nobody over the network how it is used.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

from dprm.host.engine import Load, Result, Work
from dprm.host.host import Host, Problems
from dprm.host.identity import written_word
from dprm.order.checks import check_count

# Pieces handed to an actor at a time; pieces ahead of the oldest missing result, for every actor.
HANDED, WINDOW = 2, 8
# Bytes of results under way on a cluster that is started here.
_STORE = 256_000_000


class Worker:
    """What an actor holds: the host and its model, loaded once."""

    def __init__(self, load: Load, folder: str, threads: int):
        import torch

        torch.set_num_threads(threads)
        if os.path.isdir(folder):  # Names of files mean there what they mean to whoever started the work.
            os.chdir(folder)
        self.host = load()
        self.model = self.host.model()

    def word(self) -> str:
        """What identifies the host here."""
        return written_word(self.host)

    def do(self, change: tuple[Any, Any], work: Work[Result], problems: Problems) -> Result:
        """One piece, for the host with another decoding and preference."""
        host = copy.copy(self.host)
        host.decoding, host.preference = change
        return work(host, self.model, problems)


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
    ):
        self.workers, self.address = check_count("workers", workers, 1), address
        self.gpus, self.cpus, self.tries, self.load = gpus, cpus, tries, load
        # Shared by all that `of` gives: the actors of the host that is at work; whose they are, and how it is made.
        self._actors: list[Any] = []
        self._whose: list[Any] = []

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
        self._start(host)
        change = ray.put((host.decoding, host.preference))
        works: dict[int, tuple[Any, Any]] = {}
        again: deque[_Piece] = deque()
        running: dict[Any, tuple[_Piece, Any]] = {}
        arrived: dict[int, Result] = {}
        asked = taken = 0
        fresh: tuple[Work[Result], Problems] | None = first
        while fresh is not None or again or running or arrived:
            busy = [actor for _, actor in running.values()]
            for actor in sorted(self._actors, key=busy.count):
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
            for ready in ray.wait(list(running), num_returns=1)[0] if running else ():
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
                    self._replace(actor)
            while taken in arrived:
                yield arrived.pop(taken)
                taken += 1

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors.clear()
        self._whose.clear()

    def _start(self, host: Host) -> None:
        """Actors for this host, unless they are there."""
        if not ray.is_initialized():
            local: dict[str, Any] = {"num_cpus": max(1, round(self.workers * self.cpus)), "include_dashboard": False}
            local["object_store_memory"] = _STORE
            ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR, **({} if self.address else local))
        self._check_room()
        whose = written_word(host) if self.load is None else self.load
        if self._whose and self._whose[0] == whose:
            return
        self.close()
        load = self.load or _Sent(host)
        self._whose += [whose, ray.put(load)]
        self._actors.extend(self._actor() for _ in range(self.workers))
        if self.load is not None:
            for word in ray.get([actor.word.remote() for actor in self._actors]):
                if word != written_word(host):
                    self.close()
                    raise ValueError(f"a worker makes another host {host.name}: its code, settings or weights differ")

    def _check_room(self) -> None:
        """Raise if the cluster can never hold all workers at once: they would be waited for without end."""
        untyped: Any = ray
        there: dict[str, float] = untyped.cluster_resources()
        for name, each in (("CPU", self.cpus), ("GPU", self.gpus)):
            if self.workers * each > there.get(name, 0.0):
                has = f"the cluster has {there.get(name, 0.0):g}"
                raise ValueError(f"{self.workers} workers ask for {self.workers * each:g} {name}s: {has}")

    def _actor(self) -> Any:
        remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_restarts=0)(Worker)
        return remote.remote(self._whose[1], os.getcwd(), max(1, round(self.cpus)))

    def _replace(self, lost: Any) -> None:
        """Another actor for one that died; its other pieces come back by themselves."""
        if lost in self._actors:
            self._actors[self._actors.index(lost)] = self._actor()


@dataclass(frozen=True)
class _Sent:
    """The host that is here, as `load` of an actor."""

    host: Host

    def __call__(self) -> Host:
        return self.host
