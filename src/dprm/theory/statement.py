"""What an executable statement is, and the list of all of them.

A statement pairs a claim with an experiment. The experiment returns a measured number and the bound it is compared
with; `holds` is that comparison and nothing else, so it can be false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

Run = Callable[[int, bool], "Outcome"]

EXACT = 1e-10
"""The rounding error allowed between two exact computations of one number."""

TOPICS = (
    "doob",
    "softbon",
    "tracking",
    "score",
    "online",
    "alignment",
    "predictor",
    "sampling",
    "early",
    "late",
    "gating",
    "ordering",
)
"""The files of statements, in the order of the paper's argument; the first part of every name."""


@dataclass(frozen=True)
class Outcome:
    """The numbers of one experiment."""

    measured: float  # what was computed; the worst case where several numbers were
    relation: str  # "<=" or ">="
    bound: float  # what the claim promises
    holds: bool  # whether `measured` stands in `relation` to `bound`, and the experiment's side condition was met
    note: str = ""  # the other numbers worth knowing, in one line


def at_most(measured: float, bound: float, note: str = "", side_condition: bool = True) -> Outcome:
    """measured <= bound, and the side condition."""
    return Outcome(float(measured), "<=", float(bound), bool(measured <= bound and side_condition), note)


def at_least(measured: float, bound: float, note: str = "", side_condition: bool = True) -> Outcome:
    """measured >= bound, and the side condition."""
    return Outcome(float(measured), ">=", float(bound), bool(measured >= bound and side_condition), note)


@dataclass(frozen=True)
class Statement:
    """One statement of the paper, or one counter-example that shows why a condition is needed."""

    name: str  # topic/what, unique
    claim: str  # one line; what `measured` and `bound` are
    condition: str  # the condition the claim needs
    needs: str  # the same condition in a few words, for the table
    named: bool  # whether the paper names that condition
    run: Run  # (seed, quick) -> Outcome


_ALL: dict[str, Statement] = {}


def statement(*, claim: str, condition: str, named: str = "", unnamed: str = "") -> Callable[[Run], Run]:
    """Register the decorated experiment; the function `one_step` of `doob.py` is the statement doob/one-step.

    The condition in a few words is `named` where the paper names it and `unnamed` where it does not.
    """

    def register(run: Run) -> Run:
        name = f"{run.__module__.split('.')[-1]}/{run.__name__.replace('_', '-')}"
        if name in _ALL:
            raise ValueError(f"two statements are called {name!r}")
        _ALL[name] = Statement(name, claim, condition, named or unnamed, bool(named), run)
        return run

    return register


def statements(only: str = "") -> list[Statement]:
    """All statements whose name contains `only`, in the order of the paper's argument."""
    for topic in TOPICS:
        import_module(f"dprm.theory.{topic}")
    return [s for topic in TOPICS for s in _ALL.values() if s.name.startswith(f"{topic}/") and only in s.name]
