"""The estimators by name, each for about the same price: a number of continuations or rollouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from dprm.fit.branched import Branched
from dprm.fit.branching import Branching
from dprm.fit.head import HeadFit
from dprm.fit.montecarlo import MONTE_CARLO, MonteCarlo
from dprm.fit.onpolicy import OnPolicy
from dprm.fit.policy_gradient import PolicyGradient
from dprm.host.host import Host, Problems
from dprm.order import Policy


class Estimator(Protocol):
    """Learns a policy from terminal rewards."""

    def fit(
        self, host: Host, problems: Problems, path: Path, on_round: Callable[[int, float], None] | None = None
    ) -> Policy:
        """Fit, or go on where `path` was left."""


@dataclass(frozen=True)
class Plan:
    """An estimator at a price.

    Attributes:
        rounds: how often it reports. prompts: problems of the fit split it needs.
        guidances: what to try of the policy that it gives.
    """

    estimator: Estimator
    rounds: int
    prompts: int
    guidances: Callable[[Policy], tuple[float, ...]]


def _onpolicy(paths: int, width: int | None, seed: int, rows: int) -> Plan:
    prompts, samples = 32, 4
    rounds = max(1, paths // (prompts * samples))
    found = OnPolicy(rounds=rounds, prompts=prompts, samples=samples, width=width, seed=seed)
    return Plan(found, rounds, min(rounds * prompts, 4096), lambda _: (0.5, 1.0, 2.0, 4.0))


def _branched(paths: int, width: int | None, seed: int, rows: int) -> Plan:
    branching = Branching(width=width, rows=rows, seed=seed)
    prompts = max(1, paths // (branching.states * branching.alternatives))
    return Plan(Branched(branching), 1, prompts, lambda _: (1.0, 3.0, 10.0))


def _head(paths: int, width: int | None, seed: int, rows: int, rounds: int = 3) -> Plan:
    branching = Branching(width=width, rows=rows, seed=seed)
    found = HeadFit(branching, rounds=rounds, trials=min(512, max(64, paths // 50)))
    prompts = max(rounds, paths // (branching.states * branching.alternatives)) if rounds else 0
    return Plan(found, rounds, found.trials + prompts, found.guidances)


def _montecarlo(paths: int, width: int | None, seed: int, rows: int) -> Plan:
    return Plan(MonteCarlo(width=width, seed=seed), 1, 1, lambda _: (1.0, 10.0))


def _policy_gradient(paths: int, width: int | None, seed: int, rows: int) -> Plan:
    samples = 8
    prompts = min(128, max(4, paths // (16 * samples)))
    rounds = max(1, paths // (prompts * samples))
    found = PolicyGradient(rounds=rounds, prompts=prompts, samples=samples, width=width, seed=seed)
    return Plan(found, rounds, min(rounds * prompts, 16_384), lambda _: (0.3, 1.0, 3.0))


ESTIMATORS: dict[str, Callable[[int, int | None, int, int], Plan]] = {
    "onpolicy": _onpolicy,
    "branched": _branched,
    "head": _head,
    "leaning": partial(_head, rounds=0),
    MONTE_CARLO: _montecarlo,
    "policy_gradient": _policy_gradient,
}


def estimator(name: str, paths: int, width: int | None = None, seed: int = 0, rows: int = 512) -> Plan:
    """An estimator by name.

    Args:
        paths: about how many continuations (branched, head) or rollouts (onpolicy, policy_gradient) it may take; a
            leaning takes what the head of that price spends before it branches, and Monte Carlo values nothing: their
            continuations are paid for at every prompt, on the select split too.
        width: positions revealed a step; None: the host's own budget. rows: canvases decoded together.
    """
    if name not in ESTIMATORS:
        raise ValueError(f"estimator is {name!r}: expected one of {', '.join(ESTIMATORS)}")
    if paths < 64:
        raise ValueError(f"paths is {paths}: expected at least 64")
    return ESTIMATORS[name](paths, width, seed, rows)
