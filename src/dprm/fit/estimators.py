"""The estimators by name, and the one way to run any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from dprm.fit.branched import Branched
from dprm.fit.head import HeadFit
from dprm.fit.montecarlo import MONTE_CARLO, MonteCarlo
from dprm.fit.onpolicy import OnPolicy
from dprm.fit.paper import PAPER, Paper
from dprm.fit.purpose import purpose
from dprm.fit.run import Run
from dprm.fit.seen import FITTED, sketch
from dprm.fit.sets import Sets
from dprm.host.engine import Engine, Serial
from dprm.host.host import Host
from dprm.order.policy import Policy


class Estimator(Protocol):
    """Learns a policy from terminal rewards; a frozen dataclass of its settings."""

    @property
    def name(self) -> str:
        """As in commands."""

    def learn(self, run: Run) -> Policy:
        """Ask the run for what is needed, and make a policy of it."""

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances, above 0, to try of the policy on the select split."""


ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "onpolicy": OnPolicy,
    "branched": Branched,
    "head": HeadFit,
    "leaning": partial(HeadFit, rounds=0),
    "sets": Sets,
    MONTE_CARLO: MonteCarlo,
    PAPER: Paper,
}


def estimator(name: str, **settings: Any) -> Estimator:
    """An estimator by name; of the settings it takes those that it has.

    Raises:
        ValueError: unknown name, or a setting that this estimator does not have.
    """
    if name not in ESTIMATORS:
        raise ValueError(f"estimator is {name!r}: expected one of {', '.join(ESTIMATORS)}")
    default = ESTIMATORS[name]()
    known = {each.name for each in fields(default)}  # type: ignore[arg-type]
    for setting in settings:
        if setting not in known:
            raise ValueError(f"estimator {name} has no setting {setting!r}; it has {', '.join(sorted(known))}")
    return replace(default, **settings)  # type: ignore[type-var]


@dataclass(frozen=True)
class Fitted:
    """What a fit gives.

    Attributes:
        policy: what was learned, with its price in the notes.
        shuffled: the same of values without their meaning, a control; None where a table's values can be permuted.
        groups: [n] int64, groups of the problems that it was learned on: they can neither choose nor test.
    """

    policy: Policy
    shuffled: Policy | None
    groups: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))


def fit(
    estimator: Estimator,
    host: Host,
    *,
    calls: int,
    seed: int = 0,
    rows: int = 512,
    folder: Path | None = None,
    on: Engine | None = None,
    on_progress: Callable[[int, str], None] | None = None,
) -> Fitted:
    """Learn a policy on the fit split.

    The policy notes what it was fitted for (host, variant, count rule, states, model), by what, and at which price.

    Args:
        host: with the decoding and the preference that are learned for.
        calls: model calls that the fit may take, about. rows: canvases decoded together.
        folder: keeps what is done: a fit that was killed goes on there. Estimators may share it.
        on: the engine that does the work; None: this process.
        on_progress: called with (model calls so far, what is being done).
    """
    run = Run(host, calls, folder, seed, rows, on_progress, on or Serial())
    policy = estimator.learn(run)
    notes = {
        **purpose(host),
        "estimator": estimator.name,
        "setting": repr(estimator),
        "seed": str(seed),
        "price": str(calls),
        FITTED: sketch(run.groups),
    }
    shuffled = None if run.shuffled is None else replace(run.shuffled, notes={**notes, "control": "shuffled values"})
    return Fitted(replace(policy, notes={**notes, **policy.notes, **run.cost.notes()}), shuffled, run.groups)
