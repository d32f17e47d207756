"""Branched sets: at shared states, reveal another *set* of positions, finish with the same decoder, and keep all that
came of it.

At the steps 0, T/4, T/2 and 3T/4 of a decoding of T steps the set of the order is replaced: by the positions that it
likes best among those of one host state (in a cell: predicted nonzero, predicted zero), for every such state, and by
random ones. Every position of a set is credited with what came of the branch. All benefits of every branch are kept, so
that one calibration serves every preference: only the weights differ.

    credit "difference"   R(branch) − R(the order's own set), every native position with 0
    credit "terminal"     R(branch) itself, as the paper has it

Shapes: B problems, S branches, C cells, J metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model, advance, begin, commit, read_canvas
from dprm.decode.state import State
from dprm.fit.cost import Cost
from dprm.fit.run import Columns, Run
from dprm.fit.tracking import Tracking
from dprm.host.host import Host, Problems
from dprm.order.cells import Cells
from dprm.order.checks import check_one_of
from dprm.order.noise import BRANCH, Stream, mix, mix_rows
from dprm.order.order import Order
from dprm.order.policy import Policy, evidence
from dprm.order.reading import Reading
from dprm.order.stats import Stats

# What a state that is preferred gains in log ψ: more than any confidence can make up for.
_PREFERRED = 1e3
NATIVE = 0


@dataclass(frozen=True)
class Sets:
    """The estimator of branched sets.

    Attributes:
        quarters: at which shares of the schedule to branch.
        phases, bins: of the table. gate, beta, rule: of the Order.
        credit: "difference" or "terminal".
    """

    quarters: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    phases: int = 4
    bins: int = 16
    beta: float = 1.0
    gate: tuple[float, float, float] = (0, 0, 64)
    credit: str = "difference"
    rule: str = "top_m"

    name = "sets"

    def learn(self, run: Run) -> Policy:
        """Fit; see `fit.fit`."""
        check_one_of("credit", self.credit, ("difference", "terminal"))
        host = run.host
        steps = _steps(host)
        cells = Cells(self.phases, self.bins, host.decoding.states)
        at = [int(share * steps) for share in self.quarters]
        # Besides the order's own set: one a host state, and a random one. The way to a step is decoded again.
        others = 1 + (host.decoding.states if host.decoding.state_of is not None else 0)
        price = steps + sum(t + 1 + others * (steps - t - 1) for t in at)
        count = max(1, run.calls // price)
        run.reserve(count)
        problems = run.take(count)
        order = self._order(host, cells)

        together = max(1, run.rows // (2 + host.decoding.states))
        work = _Force(host.decoding.order(), cells, tuple(at), run.seed)
        columns = run.kept("sets", repr((at, cells)), problems, together, work)
        reward = host.reward(columns["scores"])
        if self.credit == "difference":
            reward = reward - host.reward(columns["native_scores"])
        order.merge(self._credited(order, cells, columns, reward))
        assert order.stats is not None
        return order.policy(tracking=Tracking().then(None, order.stats, self.gate[2], 1).note())

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try of a fitted policy; differences are small beside log ψ."""
        return (0.5, 1.0, 2.0, 4.0) if self.credit == "terminal" else (10.0, 30.0, 100.0, 300.0, 1000.0)

    def _order(self, host: Host, cells: Cells) -> Order:
        width = host.reward_range[1] - host.reward_range[0]
        warm, switch, ready = self.gate
        return Order(
            *cells.shape,
            beta=self.beta,
            warm=warm,
            switch=switch,
            ready=ready,
            signal=host.decoding.signal,
            rule=self.rule,
            baseline="none",
            reward_range=host.reward_range if self.credit == "terminal" else (-width, width),
            shrunken=self.credit == "difference",
        )

    def _credited(self, order: Order, cells: Cells, columns: Columns, reward: Tensor) -> Stats:
        """Statistics of all branches: every position of a set has the reward of its branch."""
        stats = evidence(cells, order.beta, order.reward_range, "none")
        branch, cell = columns["chosen"].nonzero().unbind(1)
        times = columns["chosen"][branch, cell].long()
        branch, cell = branch.repeat_interleave(times), cell.repeat_interleave(times)
        stats.add(cell, reward[branch], trajectory=branch)
        return stats


def _steps(host: Host) -> int:
    """T of a host with a schedule; others are refused."""
    decoding = host.decoding
    steps = getattr(decoding.count, "steps", None)
    if steps is None or decoding.window is not None or decoding.guard is not None or decoding.revoke is not None:
        raise ValueError(
            f"estimator sets needs a schedule of a fixed number of steps over the whole canvas; host {host.name} has "
            f"{decoding.words()}"
        )
    return int(steps)


@dataclass(frozen=True)
class _Force:
    """Force sets: a piece of the fit."""

    order: Order
    cells: Cells
    at: tuple[int, ...]
    seed: int

    def __call__(self, host: Host, model: Model, problems: Problems) -> tuple[Columns, Cost]:
        return forced_sets(host, problems, self.order, self.cells, self.at, model, self.seed)


@torch.no_grad()
def forced_sets(
    host: Host, problems: Problems, order: Order, cells: Cells, at: Sequence[int], model: Model, seed: int
) -> tuple[Columns, Cost]:
    """What comes of other sets at some steps of the decodings of some problems.

    Returns:
        chosen [S,C] int16, how many positions of each cell a branch took; scores and native_scores [S,J]; kind [S], 0
        for the order's own set. The native set of a step needs no branch: what comes of it is the native decoding.
    """
    decoding = host.decoding
    start = begin(problems.canvas, decoding, mix_rows(problems.key, mix(seed)), problems.context)
    native = advance(model, start, order, decoding)
    native_scores = host.scores(problems, native.tokens.cpu())
    cost = Cost(rollouts=len(problems), calls=int(native.row_nfe.sum()))
    columns: dict[str, list[Tensor]] = {"chosen": [], "scores": [], "native_scores": [], "kind": []}
    for step in at:
        state = advance(model, start, order, decoding, until=step).state if step else start
        masked = state.tokens == decoding.mask_id
        output = model(state.tokens) if state.context is None else model(state.tokens, state.context)
        reading = read_canvas(output, state, masked, masked, masked, decoding)
        cell = _cell_of(cells, decoding, state, reading, masked)
        cost += Cost(calls=(step + 1) * len(state))
        active = torch.ones(len(state), dtype=torch.bool, device=state.tokens.device)
        for kind, positions in enumerate(_sets(order, decoding, state, reading, masked)):
            scores = native_scores
            if kind != NATIVE:
                branch = commit(state, reading.tokens, positions, masked, active, decoding)
                result = advance(model, branch, order, decoding)
                scores = host.scores(problems, result.tokens.cpu())
                cost += Cost(branches=len(state), calls=int(result.row_nfe.sum()))
            counts = torch.zeros(len(state), cells.count, dtype=torch.int16, device=positions.device)
            counts.scatter_add_(1, cell, positions.to(torch.int16))
            columns["chosen"].append(counts.cpu())
            columns["scores"].append(scores)
            columns["native_scores"].append(native_scores)
            columns["kind"].append(torch.full((len(state),), kind))
    return {name: torch.cat(parts) for name, parts in columns.items()}, cost


def _cell_of(cells: Cells, decoding: Decoding, state: State, reading: Reading, masked: Tensor) -> Tensor:
    """[B,L] int64, the cell of every position, as `Order.select` would have it."""
    progress = 1.0 - masked.sum(1) / state.initial.clamp(min=1)
    aux = None
    if decoding.state_of is not None and cells.aux > 1:
        aux = decoding.state_of(state.tokens, reading).int()
    return cells.index(cells.first_of_phase(progress), reading.confidence.clone(), aux).long()


def _sets(order: Order, decoding: Decoding, state: State, reading: Reading, masked: Tensor) -> Iterator[Tensor]:
    """[B,L] bool, one after the other: the set of the order, that of every host state, and a random one."""
    rows, length = masked.shape
    stream = Stream(mix_rows(state.seeds, state.step), 0.0, rows, masked.device)
    own = order.signal.log_psi(order.signal.value(reading, stream))
    budget = decoding.count(reading, masked, state.step)
    quota = torch.as_tensor(budget, device=masked.device).expand(rows).unsqueeze(1)
    scores = [own]
    if decoding.state_of is not None:
        aux = decoding.state_of(state.tokens, reading)
        scores += [own + _PREFERRED * (aux == value) for value in range(decoding.states)]
    scores.append(stream.log_uniform(length, BRANCH))
    for score in scores:
        rank = torch.where(masked, score, -torch.inf).argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        yield masked & (rank < quota)
