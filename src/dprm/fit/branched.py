"""The branched table: cells credited with the difference that choosing them made.

Every alternative adds its Δ = R(alternative) − R(native) to its own cell, and every native choice a 0 to its cell: a
value is then what taking a position of that cell instead of the order's own choice is worth, unconfounded with how easy
the problem was. Sparse cells lean on their parents. Later rounds branch under the order as it then stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dprm.decode.host import Host, Problems
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.order import Cells, Order, Policy
from dprm.order.noise import mix
from dprm.order.policy import evidence
from dprm.order.stats import Stats


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
            on_round: called with (rounds done, mean difference made by an alternative).
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
            order.policy(**notes, **cost.notes()).save(path)
            if on_round is not None:
                on_round(turn + 1, float(branches.gain[branches.kept].mean()))
        return order.policy(**notes, **cost.notes())

    def _start(self, host: Host, path: Path, notes: dict[str, str]) -> tuple[Order, Cost]:
        if path.is_file():
            policy = Policy.load(path)
            if any(policy.notes.get(name) != text for name, text in notes.items()):
                raise ValueError(f"{path} is another fit ({policy.notes}): choose another file or delete it")
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
    sight = branches.sight
    cell = cells.index(
        cells.first_of_phase(sight.progress), sight.confidence, sight.aux.int() if cells.aux > 1 else None
    ).long()
    stats = evidence(cells, beta, reward_range, "none")
    stats.add(cell.gather(1, branches.alternative)[branches.kept], branches.gain[branches.kept])
    native = cell.gather(1, branches.native.unsqueeze(1)).squeeze(1)
    stats.add(native, branches.gain.new_zeros(len(native)))
    return stats
