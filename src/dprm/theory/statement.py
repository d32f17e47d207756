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
    """The numbers of one experiment.

    Attributes:
        bound: the number the claim promises.
        measured: the number that was computed; the worst case where several were.
        holds: whether `measured` stands in `relation` to `bound` (and the experiment's side condition was met).
        note: the other numbers worth knowing, in one line.
        relation: "<=" or ">=".
    """

    bound: float
    measured: float
    holds: bool
    note: str = ""
    relation: str = "<="


def at_most(measured: float, bound: float, note: str = "", side_condition: bool = True) -> Outcome:
    """measured <= bound, and the side condition."""
    return Outcome(float(bound), float(measured), bool(measured <= bound and side_condition), note, "<=")


def at_least(measured: float, bound: float, note: str = "", side_condition: bool = True) -> Outcome:
    """measured >= bound, and the side condition."""
    return Outcome(float(bound), float(measured), bool(measured >= bound and side_condition), note, ">=")


@dataclass(frozen=True)
class Statement:
    """One statement of the paper, or one counter-example that shows why a condition is needed.

    Attributes:
        name: topic/what, unique.
        claim: one line; what `measured` and `bound` are.
        condition: the condition the claim needs.
        needs: the same condition in a few words, for the table.
        named: whether the paper names that condition.
        run: (seed, quick) -> Outcome.
    """

    name: str
    claim: str
    condition: str
    needs: str
    named: bool
    run: Run


_ALL: dict[str, Statement] = {}


def statement(*, claim: str, condition: str, needs: str, named: bool = False) -> Callable[[Run], Run]:
    """Register the decorated experiment; the function `one_step` of `doob.py` is the statement doob/one-step."""

    def register(run: Run) -> Run:
        name = f"{run.__module__.split('.')[-1]}/{run.__name__.replace('_', '-')}"
        if name in _ALL:
            raise ValueError(f"two statements are called {name!r}")
        _ALL[name] = Statement(name, claim, condition, needs, named, run)
        return run

    return register


def statements(only: str = "") -> list[Statement]:
    """All statements whose name contains `only`, in the order of the paper's argument."""
    for topic in TOPICS:
        import_module(f"dprm.theory.{topic}")
    ranked = sorted(_ALL.values(), key=lambda s: TOPICS.index(s.name.split("/")[0]))
    return [s for s in ranked if only in s.name]
