"""Actors of Ray that hold a host and its model: started, waited for, replaced when they die."""

from __future__ import annotations

import copy
import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Before Ray is imported: it asks nobody over the network how it is used.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

from dprm.host.engine import Load, Result, Work
from dprm.host.host import Host, Problems
from dprm.host.identity import written_word

# Bytes of results under way on a cluster that is started here.
_STORE = 256_000_000
# Seconds after which somebody wants to know what is waited for.
_PATIENCE = 10.0


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


@dataclass(frozen=True)
class _Sent:
    """The host that is here, as `load` of an actor."""

    host: Host

    def __call__(self) -> Host:
        return self.host


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
        self.alive: list[Any] = []
        # Whose they are, and how a new one makes the host.
        self._whose: Any = None
        self._load: Any = None

    def start(self, host: Host, load: Load | None) -> None:
        """Have actors for this host, unless they are there.

        Raises:
            ValueError: the cluster is too small, or a worker makes another host.
        """
        if not ray.is_initialized():
            local: dict[str, Any] = {"num_cpus": max(1, round(self.count * self.cpus)), "include_dashboard": False}
            local["object_store_memory"] = _STORE
            ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR, **({} if self.address else local))
        self._check_room()
        whose = written_word(host) if load is None else load
        if self._whose is not None and self._whose == whose:
            return
        self.close()
        self._whose, self._load = whose, ray.put(load or _Sent(host))
        self.alive = [self._new() for _ in range(self.count)]
        words = [actor.word.remote() for actor in self.alive]
        self._await(words)
        if load is not None and any(word != written_word(host) for word in ray.get(words)):
            self.close()
            raise ValueError(f"a worker makes another host {host.name}: its code, settings or weights differ")

    def replace(self, lost: Any) -> None:
        """Another actor for one that died; its other pieces come back by themselves."""
        if lost in self.alive:
            self.alive[self.alive.index(lost)] = self._new()

    def close(self) -> None:
        """End them."""
        for actor in self.alive:
            ray.kill(actor)
        self.alive, self._whose = [], None

    def _new(self) -> Any:
        remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_restarts=0)(Worker)
        return remote.remote(self._load, os.getcwd(), max(1, round(self.cpus)))

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

    def _await(self, answers: list[Any]) -> None:
        """Wait for the first answer of every actor; say once why it takes long: a busy cluster, or a large model."""
        left = ray.wait(answers, num_returns=len(answers), timeout=_PATIENCE)[1]
        if not left:
            return
        busy = [(name, there, free) for name, each, there, free in self._resources() if each > free]
        why = " and ".join(f"{free:g} of {there:g} {name}s are free" for name, there, free in busy)
        waited = f"{len(left)} of {self.count} workers are waited for"
        self.on_wait(f"{waited}: {why}, other work holds the rest" if busy else f"{waited}: they load the model")
        ray.wait(left, num_returns=len(left))
