"""The branched table: cells credited with the difference that choosing them made.

Every alternative adds its Δ = R(alternative) − R(native) to its own cell, and every native choice a 0 to its cell: a
value is then what taking a position of that cell instead of the order's own choice is worth, unconfounded with how easy
the problem was. Sparse cells lean on their parents. Later rounds branch under the order as it then stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from dprm.decode.host import Host, Problems
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.fit.resume import check_same_fit
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
        phases, bins: of the table. aux: whether its cells know the host's state.
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
        order, cost = self._start(host, path, notes)
        denoiser = host.denoiser()
        for turn in range(order.step, self.rounds):
            part = problems[turn * len(problems) // self.rounds : (turn + 1) * len(problems) // self.rounds]
            setting = replace(self.branching, seed=mix(self.branching.seed, turn))
            branches = setting.collect(host, part, order, denoiser)
            order.merge(credited(branches, order.cells, order.beta, order.reward_range))
            order.step, cost = turn + 1, cost + branches.cost
            explained = transfer(branches, order)
            order.policy(**notes, **cost.notes(), explained=f"{explained:.5f}").save(path)
            if on_round is not None:
                on_round(turn + 1, explained)
        return Policy.load(path)

    def _start(self, host: Host, path: Path, notes: dict[str, str]) -> tuple[Order, Cost]:
        if path.is_file():
            policy = Policy.load(path)
            check_same_fit(path, policy.notes, notes)
            return Order.from_policy(policy), Cost.of_notes(policy.notes)
        width = host.reward_range[1] - host.reward_range[0]
        order = Order(
            phases=self.phases,
            bins=self.bins,
            aux=host.aux_states if self.aux else 1,
            beta=self.beta,
            guidance=self.guidance,
            ready=self.ready,
            baseline="none",
            reward_range=(-width, width),
            shrunken=True,
        )
        return order, Cost()


def credited(branches: Branches, cells: Cells, beta: float, reward_range: tuple[float, float]) -> Stats:
    """Statistics of the differences, cell by cell."""
    alternative, native = _cells(branches, cells)
    stats = evidence(cells, beta, reward_range, "none")
    stats.add(alternative[branches.kept], branches.gain[branches.kept])
    stats.add(native.squeeze(1), branches.gain.new_zeros(len(native)))
    return stats


def transfer(branches: Branches, order: Order, judged: float = 0.2) -> float:
    """Share of the variance of the differences that a table of some problems explains on the others.

    Below 0 the table says less about other problems than no table at all: what it holds is those problems.
    """
    learned, others = branches.held_out(judged)
    if not len(learned) or not len(others):
        return 0.0
    stats = credited(learned, order.cells, order.beta, order.reward_range)
    value = estimate(stats, "none", shrunken=True).value
    alternative, native = _cells(others, order.cells)
    error = (others.gain - (value[alternative] - value[native]))[others.kept].square().sum()
    total = others.gain[others.kept].square().sum()
    return float(1.0 - error / total) if total > 0 else 0.0


def _cells(branches: Branches, cells: Cells) -> tuple[Tensor, Tensor]:
    """[S,K] cells of the alternatives and [S,1] of the native choices."""
    sight = branches.sight
    aux = sight.aux.int() if cells.aux > 1 else None
    cell = cells.index(cells.first_of_phase(sight.progress), sight.confidence, aux).long()
    return cell.gather(1, branches.alternative), cell.gather(1, branches.native.unsqueeze(1))
