"""The branched table: cells credited with the difference that choosing them made.

Every alternative adds its Δ = R(alternative) − R(native) to its own cell, and every native choice a 0 to its cell: a
value is then what taking a position of that cell instead of the order's own choice is worth, unconfounded with how easy
the problem was. Sparse cells lean on their parents. Later rounds branch under the order as it then stands.

How rich the cells should be is asked of the first round: phases, bins and the host's state are each kept or dropped,
and of these grids the poorest is taken whose table explains, on problems that it was not made from, as much as the best
less one standard error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import torch

from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.pool import Pool, problems_at_most
from dprm.fit.run import Run
from dprm.fit.tracking import Tracking
from dprm.host.host import Host
from dprm.order.cells import Cells
from dprm.order.checks import check_count
from dprm.order.order import Order
from dprm.order.policy import Policy, evidence
from dprm.order.stats import Stats
from dprm.order.values import estimate


@dataclass(frozen=True)
class Branched:
    """The branched table estimator.

    Attributes:
        branching: where and how to branch.
        rounds: collections, each on the next problems of the fit split and under the order learned so far.
        phases, bins: of the richest table that is tried. aux: whether its cells know the host's state.
        beta, gate: of the Order. rule: how it selects.
    """

    branching: Branching = field(default_factory=Branching)
    rounds: int = 1
    phases: int = 8
    bins: int = 16
    aux: bool = True
    beta: float = 1.0
    gate: tuple[float, float, float] = (0, 0, 64)
    rule: str = "top_m"

    name = "branched"

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds, 1)
        warm, switch, ready = self.gate
        # An Order says what is wrong with a setting; better before the first decoding than after it.
        Order(self.phases, self.bins, 1, self.beta, 1.0, warm, switch, ready, rule=self.rule)

    def learn(self, run: Run) -> Policy:
        """Fit; see `fit.fit`."""
        run.reserve(problems_at_most(run, self.branching))
        pool = Pool(run, self.branching)
        host, tracking, shares = run.host, Tracking(), dict[Cells, float]()
        # Without evidence it is the host's order, whatever its cells.
        order = self._order(host, self._grids(host)[0])
        for turn in range(self.rounds):
            latest = pool.collect(order, turn, self.rounds)
            if latest is None:
                break
            branches = latest
            if not turn:
                shares = {cells: transfer(host, branches, order, cells) for cells in self._grids(host)}
                order = self._order(host, poorest(shares, branches.count))
            before = order.stats
            order.merge(credited(host, branches, order, order.cells))
            assert order.stats is not None
            tracking = tracking.then(before, order.stats, self.gate[2], self.rounds)
            order.step = turn + 1
        explained = transfer(host, branches, order, order.cells)
        grids = ", ".join(f"{' × '.join(map(str, cells.shape))}: {share:+.5f}" for cells, share in shares.items())
        return order.policy(explained=f"{explained:.5f}", grids=grids, tracking=tracking.note())

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try of a fitted policy."""
        return (1.0, 3.0, 10.0)

    def _order(self, host: Host, cells: Cells) -> Order:
        """One that knows nothing yet."""
        width = host.reward_range[1] - host.reward_range[0]
        return Order(
            *cells.shape,
            beta=self.beta,
            warm=self.gate[0],
            switch=self.gate[1],
            ready=self.gate[2],
            signal=host.decoding.signal,
            rule=self.rule,
            baseline="none",
            reward_range=(-width, width),
            shrunken=True,
        )

    def _grids(self, host: Host) -> list[Cells]:
        """The richest grid first; the one that knows nothing of a position is not among them."""
        states = host.decoding.states if self.aux else 1
        shapes = product(*({most: None, 1: None} for most in (self.phases, self.bins, states)))
        return [Cells(*shape) for shape in shapes if shape[1:] != (1, 1)]


def credited(host: Host, branches: Branches, order: Order, cells: Cells) -> Stats:
    """Statistics of the differences, cell by cell."""
    alternative, native = branches.cells(cells)
    stats = evidence(cells, order.beta, order.reward_range, "none")
    gain = branches.gain(host)
    # Alternatives of one problem share the answer that they are compared with.
    _, problem = torch.unique(branches.group, return_inverse=True)
    cell = torch.cat([alternative[branches.tried], native.squeeze(1)])
    change = torch.cat([gain[branches.tried], gain.new_zeros(len(native))])
    origin = torch.cat([problem.unsqueeze(1).expand_as(branches.tried)[branches.tried], problem])
    stats.add(cell, change, trajectory=origin)
    return stats


def transfer(host: Host, branches: Branches, order: Order, cells: Cells, folds: int = 5) -> float:
    """Share of the variance of the differences that tables explain on problems they were not made from.

    Every fold of the problems is judged by a table of the others. Below 0 a table says less about other problems than
    no table at all: what it holds is those problems.
    """
    error = total = 0.0
    for learned, others in branches.folds(folds):
        if not len(learned) or not len(others):
            continue
        value = estimate(credited(host, learned, order, cells), "none", shrunken=True).value
        alternative, native = others.cells(cells)
        gain = others.gain(host)
        error += float((gain - (value[alternative] - value[native]))[others.tried].square().sum())
        total += float(gain[others.tried].square().sum())
    return 1.0 - error / total if total > 0 else 0.0


def poorest(shares: dict[Cells, float], comparisons: int) -> Cells:
    """The grid of the fewest cells that explains as much as the best, less the error of a share r²: 2r(1 − r²)/√n."""
    best = max(shares.values())
    error = 2.0 * max(best, 0.0) ** 0.5 * (1.0 - best) * max(comparisons, 1) ** -0.5
    return min((cells for cells, share in shares.items() if share >= best - error), key=lambda cells: cells.count)
