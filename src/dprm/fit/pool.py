"""All branches of a fit so far: made in rounds, each at as many problems as its share of the calls pays for."""

from __future__ import annotations

import torch

from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.run import Run
from dprm.order.order import Order

# Calls of a branch as a share of those of a whole answer, before any was made.
_BRANCH = 0.45
# Problems of the first collection: they tell what branches cost here.
_FIRST = 16


def problems_at_most(run: Run, branching: Branching) -> int:
    """How many problems the calls of a run may pay for, with something to spare where branches are cheap."""
    return int(1.5 * run.calls / _price(run, branching)) + _FIRST


def _price(run: Run, branching: Branching) -> float:
    """Calls of one problem and its branches, before any was made."""
    return run.steps * (1.0 + _BRANCH * branching.states * branching.alternatives)


class Pool:
    """All branches of a fit so far, and what they cost."""

    def __init__(self, run: Run, branching: Branching):
        self.run, self.branching = run, branching
        self.parts: list[Branches] = []
        self._problems = self._calls = 0

    @property
    def branches(self) -> Branches:
        """All of them."""
        return Branches.joined(self.parts)

    @property
    def width(self) -> float:
        """Positions that were asked for a step, on average."""
        return float(self.branches.sight.budget.double().mean()) if len(self.branches) else 1.0

    @property
    def device(self) -> torch.device:
        """Where regressions are worked out."""
        return self.run.take(0).canvas.device

    def collect(self, order: Order, turn: int, rounds: int) -> Branches | None:
        """The branches of a round, under its order; None where nothing is left to pay for any.

        The calls that are left are shared among the rounds that are left; the first few problems tell what one costs.
        """
        before, share = len(self.parts), (self.run.calls - self.run.cost.calls) / (rounds - turn)
        if not self.parts:
            self._branch(order, turn, min(_FIRST, max(1, int(share / _price(self.run, self.branching)))))
            share -= self._calls
        self._branch(order, turn, int(share * self._problems / max(1, self._calls)))
        return Branches.joined(self.parts[before:]) if len(self.parts) > before else None

    def _branch(self, order: Order, turn: int, problems: int) -> None:
        if problems > 0:
            before = self.run.cost.calls
            self.parts.append(self.run.branches(order, self.run.take(problems), self.branching, turn))
            self._problems += problems
            self._calls += self.run.cost.calls - before
