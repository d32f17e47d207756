"""The branched table: cells credited with the difference that choosing them made.

Every alternative adds its Δ = R(alternative) − R(native) to its own cell, and every native choice a 0 to its cell: a
value is then what taking a position of that cell instead of the order's own choice is worth, unconfounded with how easy
the problem was. Sparse cells lean on their parents. Later rounds branch under the order as it then stands.

How rich the cells should be is asked of the first round: phases, bins and the host's state are each kept or dropped,
and of these grids the poorest is taken whose table explains, on problems that it was not made from, as much as the best
less one standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from torch import Tensor

from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.fit.resume import check_same_fit
from dprm.fit.tracking import Tracking
from dprm.host.host import Host, Problems
from dprm.order import Cells, Order, Policy
from dprm.order.noise import mix
from dprm.order.policy import evidence
from dprm.order.stats import Stats
from dprm.order.values import estimate


@dataclass(frozen=True)
class Branched:
    """The branched table estimator.

    Attributes:
        branching: where and how to branch.
        rounds: collections, each on the next problems of the fit split and under the order learned so far.
        phases, bins: of the richest table that is tried. aux: whether its cells know the host's state.
        beta, guidance, ready: of the Order.
    """

    branching: Branching = field(default_factory=Branching)
    rounds: int = 1
    phases: int = 8
    bins: int = 16
    aux: bool = True
    beta: float = 1.0
    guidance: float = 1.0
    ready: float = 64

    def fit(
        self, host: Host, problems: Problems, path: Path, on_round: Callable[[int, float], None] | None = None
    ) -> Policy:
        """Fit, or go on fitting where `path` holds a policy of this very fit; written after every round.

        Args:
            problems: the fit split, cut into as many parts as there are rounds.
            on_round: called with (rounds done, share of the differences' variance explained on other problems).
        """
        if len(problems) < self.rounds:
            raise ValueError(f"problems has {len(problems)} prompts: {self.rounds} rounds need one each")
        notes = {"host": host.name, "estimator": "branched", "problems": problems.digest, "setting": repr(self)}
        order, cost, tracking, grids = self._start(host, path, notes)
        denoiser = host.denoiser()
        for turn in range(order.step, self.rounds):
            part = problems[turn * len(problems) // self.rounds : (turn + 1) * len(problems) // self.rounds]
            setting = replace(self.branching, seed=mix(self.branching.seed, turn))
            branches = setting.collect(host, part, order, denoiser)
            if not turn:
                shares = {each: transfer(branches, each, order.beta, order.reward_range) for each in self._grids(host)}
                order = self._order(host, poorest(shares, int(branches.kept.sum())))
                grids = ", ".join(f"{' × '.join(map(str, cells.shape))}: {shares[cells]:+.5f}" for cells in shares)
            before = order.stats
            order.merge(credited(branches, order.cells, order.beta, order.reward_range))
            assert order.stats is not None
            tracking = tracking.then(before, order.stats, self.ready, self.rounds)
            order.step, cost = turn + 1, cost + branches.cost
            explained = transfer(branches, order.cells, order.beta, order.reward_range)
            found = {"explained": f"{explained:.5f}", "grids": grids, "tracking": tracking.note()}
            order.policy(**notes, **cost.notes(), **found).save(path)
            if on_round is not None:
                on_round(turn + 1, explained)
        return Policy.load(path)

    def _start(self, host: Host, path: Path, notes: dict[str, str]) -> tuple[Order, Cost, Tracking, str]:
        if path.is_file():
            policy = Policy.load(path)
            check_same_fit(path, policy.notes, notes)
            known = Cost.of_notes(policy.notes), Tracking.of_notes(policy.notes), policy.notes.get("grids", "")
            return Order.from_policy(policy), *known
        # Without evidence it is the host's order, whatever its cells.
        return self._order(host, self._grids(host)[0]), Cost(), Tracking(), ""

    def _order(self, host: Host, cells: Cells) -> Order:
        """One that knows nothing yet."""
        width = host.reward_range[1] - host.reward_range[0]
        return Order(
            *cells.shape,
            beta=self.beta,
            guidance=self.guidance,
            ready=self.ready,
            baseline="none",
            reward_range=(-width, width),
            shrunken=True,
        )

    def _grids(self, host: Host) -> list[Cells]:
        """The richest grid first; the one that knows nothing of a position is not among them."""
        states = host.aux_states if self.aux else 1
        kept = product(*({most: None, 1: None} for most in (self.phases, self.bins, states)))
        return [Cells(*shape) for shape in kept if shape[1:] != (1, 1)]


def credited(branches: Branches, cells: Cells, beta: float, reward_range: tuple[float, float]) -> Stats:
    """Statistics of the differences, cell by cell."""
    alternative, native = _cells(branches, cells)
    stats = evidence(cells, beta, reward_range, "none")
    stats.add(alternative[branches.kept], branches.gain[branches.kept])
    stats.add(native.squeeze(1), branches.gain.new_zeros(len(native)))
    return stats


def transfer(branches: Branches, cells: Cells, beta: float, reward_range: tuple[float, float], folds: int = 5) -> float:
    """Share of the variance of the differences that tables explain on problems they were not made from.

    Every fold of the problems is judged by a table of the others. Below 0 a table says less about other problems than
    no table at all: what it holds is those problems.
    """
    error = total = 0.0
    for learned, others in branches.folds(folds):
        if not len(learned) or not len(others):
            continue
        value = estimate(credited(learned, cells, beta, reward_range), "none", shrunken=True).value
        alternative, native = _cells(others, cells)
        error += float((others.gain - (value[alternative] - value[native]))[others.kept].square().sum())
        total += float(others.gain[others.kept].square().sum())
    return 1.0 - error / total if total > 0 else 0.0


def poorest(shares: dict[Cells, float], comparisons: int) -> Cells:
    """The grid of the fewest cells that explains as much as the best, less the error of a share r²: 2r(1 − r²)/√n."""
    best = max(shares.values())
    error = 2.0 * max(best, 0.0) ** 0.5 * (1.0 - best) * max(comparisons, 1) ** -0.5
    return min((cells for cells, share in shares.items() if share >= best - error), key=lambda cells: cells.count)


def _cells(branches: Branches, cells: Cells) -> tuple[Tensor, Tensor]:
    """[S,K] cells of the alternatives and [S,1] of the native choices."""
    sight = branches.sight
    aux = sight.aux.int() if cells.aux > 1 else None
    cell = cells.index(cells.first_of_phase(sight.progress), sight.confidence, aux).long()
    return cell.gather(1, branches.alternative), cell.gather(1, branches.native.unsqueeze(1))
