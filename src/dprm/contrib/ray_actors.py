"""Actors of Ray that hold a host and its model: started, waited for, replaced when they die."""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any

# Before Ray is imported: it asks nobody over the network how it is used.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

from dprm.contrib.ray_worker import Sent, Worker
from dprm.host.engine import Load
from dprm.host.host import Host
from dprm.host.identity import written_word

# Bytes of results under way on a cluster that is started here.
_STORE = 256_000_000
# Seconds after which somebody wants to know what is waited for.
_PATIENCE = 10.0
# How often, for every actor, a new one may die before it has answered.
_TRIES = 5


class Actors:
    """The actors of the host that is at work.

    Args:
        count: of them. address, gpus, cpus: see `Ray`.
        on_wait: told what is waited for; None: a warning.
    """

    def __init__(
        self,
        count: int,
        address: str | None,
        gpus: float,
        cpus: float,
        on_wait: Callable[[str], None] | None,
    ):
        self.count, self.address, self.gpus, self.cpus = count, address, gpus, cpus
        self.on_wait = on_wait or warnings.warn
        # Those that have made the host, and the first answers of those that may still wait for a place.
        self.alive: list[Any] = []
        self._coming: dict[Any, Any] = {}
        # Whose they are, how a new one makes the host, and what identifies it there, where that is not sent.
        self._whose: Any = None
        self._load: Any = None
        self._word: str | None = None
        # New actors that died one after the other.
        self._failed = 0

    def start(self, host: Host, load: Load | None) -> None:
        """Have actors for this host, unless they are there.

        Raises:
            ValueError: the cluster is too small, or a worker cannot make this host.
        """
        if not ray.is_initialized():
            local: dict[str, Any] = {"num_cpus": max(1, round(self.count * self.cpus)), "include_dashboard": False}
            local["object_store_memory"] = _STORE
            polite = signal.getsignal(signal.SIGTERM)
            ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR, **({} if self.address else local))
            if threading.current_thread() is threading.main_thread():  # Ray's own ends the process without a word.
                signal.signal(signal.SIGTERM, polite)
        whose = written_word(host) if load is None else load
        if self._whose is not None and self._whose == whose:
            return
        self._check_room()
        self.close()
        self._whose, self._load = whose, ray.put(load or Sent(host))
        self._word = None if load is None else written_word(host)
        for _ in range(self.count):
            self._begin()
        while self._coming:
            self.first_ready([])

    def first_ready(self, running: Iterable[Any]) -> Any:
        """The first answer there is of those that run; None where it was that of a new actor, which is alive now.

        A new actor may find no place, because a machine of the cluster is gone: the others go on without it. Where
        nobody works, what is waited for is said.
        """
        answers = [*running, *self._coming]
        ready = ray.wait(answers, num_returns=1, timeout=None if self.alive and running else _PATIENCE)[0]
        if not ready:
            self._say_waiting()
            ready = ray.wait(answers, num_returns=1)[0]
        if ready[0] not in self._coming:
            return ready[0]
        actor = self._coming.pop(ready[0])
        try:
            word = ray.get(ready[0])
        except ray.exceptions.RayActorError as error:
            self._failed += 1
            if error.actor_init_failed or self._failed >= _TRIES * self.count:
                self.close()
                reason = str(error).strip().splitlines()[-1]
                raise ValueError(f"workers die while they make the host and its model: {reason}") from error
            self._begin()  # Its machine died, perhaps.
            return None
        if self._word is not None and word != self._word:
            self.close()
            raise ValueError("a worker makes another host than this process: its code, settings or weights differ")
        self._failed = 0
        self.alive.append(actor)
        return None

    def replace(self, lost: Any) -> None:
        """Another actor for one that died; its other pieces come back by themselves."""
        if lost in self.alive:
            self.alive.remove(lost)
            self._begin()

    def close(self) -> None:
        """End them."""
        for actor in (*self.alive, *self._coming.values()):
            ray.kill(actor)
        self.alive, self._coming, self._whose = [], {}, None

    def _begin(self) -> None:
        remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_restarts=0)(Worker)
        actor = remote.remote(self._load, os.getcwd(), max(1, round(self.cpus)))
        self._coming[actor.word.remote()] = actor

    def _check_room(self) -> None:
        """Raise if the cluster can never hold all workers at once: they would be waited for without end."""
        for name, each, there, _ in self._resources():
            if self.count * each > there:
                raise ValueError(
                    f"{self.count} workers ask for {self.count * each:g} {name}s: the cluster has {there:g}"
                )

    def _resources(self) -> list[tuple[str, float, float, float]]:
        """Of every kind: what a worker asks for, what the cluster has, and what of it is free."""
        untyped: Any = ray
        there: dict[str, float] = untyped.cluster_resources()
        free: dict[str, float] = untyped.available_resources()
        asked = (("CPU", self.cpus), ("GPU", self.gpus))
        return [(name, each, there.get(name, 0.0), free.get(name, 0.0)) for name, each in asked]

    def _say_waiting(self) -> None:
        """Why it takes long: a busy cluster, or a large model."""
        busy = [(name, there, free) for name, each, there, free in self._resources() if each > free]
        why = " and ".join(f"{free:g} of {there:g} {name}s are free" for name, there, free in busy)
        waited = f"{len(self._coming)} of {self.count} workers are waited for"
        self.on_wait(f"{waited}: {why}, other work holds the rest" if busy else f"{waited}: they load the model")
