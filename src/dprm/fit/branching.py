"""Branching: at states that the order visits, put another position first, finish with the same decoder, and compare.

The common prefix is paid once: canvases are forked where they part. Native and alternative share model, tokens, random
numbers and continuation, so the difference of their terminal rewards is due to the one choice that differs. Any count
rule, window, guard and revoking host will do: a branch is the host's own step with another set of positions.

Branches go where they can tell something. A state is drawn ∝ ε − log(confidence of the least sure choice), with
ε = .002 + .1·(1 − 1/m): where the order is sure, every alternative ends the same way; not so where it reveals m
positions a step, and the sure ones may be saved to go with unsure ones later. Alternatives are drawn without
replacement ∝ e^{τ·score}: with τ < 1 positions that the order would hardly take are tried as well, and none counts as
further behind the best than ten log odds. Two certain positions are not compared.

Some branches come back: alternative and native choice are both revealed a few steps later, with the same tokens, and
the canvas is one of the native decoding again. All that follows is the same, so such a branch is not continued; its
difference is 0. Where one position is revealed a step, branches reveal with it all that is surer than .99: what is
certain stays what it is, whenever it is revealed, and a third of the model calls is saved.

Shapes: B problems, S states, K alternatives, m positions a step, L positions, J metrics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dprm.decode.counts import Fixed, depends_on_step
from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model, Result, Step, advance, begin, commit, competing
from dprm.decode.state import State
from dprm.fit.branches import Branches
from dprm.fit.cost import Cost
from dprm.host.host import Host, Problems
from dprm.order.head import Sight
from dprm.order.noise import BRANCH, Stream, mix, mix_rows
from dprm.order.order import Order
from dprm.order.reading import Reading

_SURE, _EVEN = 0.002, 0.1
_CERTAIN = 0.999
_BEHIND = 10.0
# What is surer is revealed together, where one position a step is.
_TOGETHER = 0.99
# Steps between two looks whether a branch has come back.
_LOOK = 3


@dataclass(frozen=True)
class Branching:
    """Where and how to branch.

    Attributes:
        states: states of each problem. alternatives: K, tried at each of them.
        temper: τ of the proposal; 0 proposes uniformly, 1 in proportion to e^score.
    """

    states: int = 4
    alternatives: int = 4
    temper: float = 0.3

    def collect(
        self, host: Host, problems: Problems, order: Order, model: Model, seed: int = 0, rows: int = 512
    ) -> tuple[Branches, Cost]:
        """Branch from the decodings of some problems under `order`.

        Args:
            rows: canvases decoded together; changes the time, not the result.
        """
        decoding = host.decoding
        start = begin(problems.canvas, decoding, mix_rows(problems.key, mix(seed)), problems.context)
        visits = _Visits(len(problems), self.states, decoding.together)
        native = advance(model, start, order, decoding, on_step=visits.offer)
        scores = host.scores(problems, native.tokens.cpu())
        cost = Cost(rollouts=len(problems), calls=int(native.row_nfe.sum()))
        visit = visits.chosen(start)
        alternative, tried = self._alternatives(visit)
        state_of, slot = tried.nonzero().unbind(1)
        branch_scores = torch.zeros(*alternative.shape, scores.shape[1])
        for first in range(0, len(state_of), rows):
            part, which = state_of[first : first + rows], slot[first : first + rows]
            tokens, spent = _finished(visit, part, alternative[part, which], order, decoding, model, native)
            answered = problems[visit.state.row[part].cpu()]
            branch_scores[part.cpu(), which.cpu()] = host.scores(answered, tokens.cpu())
            cost += spent
        row = visit.state.row.cpu()
        branches = Branches(
            sight=visit.sight(decoding),
            group=problems.groups[row.to(problems.key.device)],
            native=visit.native,
            alternative=alternative,
            tried=tried,
            native_scores=scores[row],
            scores=branch_scores,
        )
        return branches.to("cpu"), cost

    def _alternatives(self, visit: _Visit) -> tuple[Tensor, Tensor]:
        """alternative [S,K] and tried [S,K]."""
        rows, length = visit.candidates.shape
        stream = Stream(mix_rows(visit.state.seeds, visit.state.step), 0.0, rows, visit.candidates.device)
        confidence = visit.reading.confidence
        doubtful = confidence < _CERTAIN
        free = visit.candidates & ~visit.taken & (doubtful | doubtful.gather(1, visit.native.unsqueeze(1)))
        noise = stream.log_uniform(length, BRANCH, turn=2).neg_().log_().neg_()
        score = torch.where(free, visit.score, -torch.inf)
        score = score.maximum(score.amax(1, keepdim=True) - _BEHIND)
        keys = torch.where(free, self.temper * score + noise, -torch.inf)
        top = keys.topk(min(self.alternatives, length), dim=1)
        return top.indices, torch.isfinite(top.values)


@dataclass
class _Visit:
    """S decisions of decodings: the state before each, what was seen, and what was chosen.

    Attributes:
        state, reading: [S] rows of them. candidates, eligible: [S,L] bool. score: [S,L].
        chosen: [S,L] bool, what the order chose. taken: that and what is revealed with it, being sure.
        budget: [S] int64, positions asked for. progress: [S].
    """

    state: State
    reading: Reading
    candidates: Tensor
    eligible: Tensor
    chosen: Tensor
    taken: Tensor
    score: Tensor
    budget: Tensor
    progress: Tensor

    @property
    def native(self) -> Tensor:
        """[S] int64, one of the chosen positions, drawn evenly: the one that alternatives take the place of."""
        stream = Stream(mix_rows(self.state.seeds, self.state.step), 0.0, len(self.budget), self.chosen.device)
        lot = stream.log_uniform(self.chosen.shape[1], BRANCH, turn=1)
        return torch.where(self.chosen & self.candidates, lot, -torch.inf).argmax(1)

    def sight(self, decoding: Decoding) -> Sight:
        """What the decisions showed."""
        aux = None if decoding.state_of is None else decoding.state_of(self.state.tokens, self.reading)
        return Sight.of(self.reading, self.candidates, self.budget, self.progress, aux)


class _Visits:
    """The visited states of every row that are kept: a weighted reservoir, so that memory does not grow with the steps.

    Of keys log(u)/weight, u uniform, the largest are a draw without replacement ∝ weight.
    """

    _STATE = ("tokens", "step_map", "redrawn", "step", "window", "window_step")
    _READING = ("tokens", "confidence", "margin", "entropy")

    def __init__(self, rows: int, states: int, together: float | None):
        self.rows, self.states, self.together = rows, states, together
        self._key: Tensor | None = None
        self._columns: dict[str, Tensor] = {}

    def offer(self, step: Step) -> None:
        """Keep the state before a step, if its key is among the largest of its row."""
        choice, state = step.choice, step.state
        sure = choice.candidates & (step.reading.confidence > (1.0 if self.together is None else self.together))
        revealed = choice.mask | sure
        free = choice.candidates & ~revealed
        picked = choice.mask & choice.candidates
        least = torch.where(picked, step.reading.confidence, torch.inf).amin(1).clamp(min=1e-6, max=1.0)
        even = _EVEN * (1.0 - 1.0 / choice.budget.clamp(min=1).double()).float()
        weight = torch.where(free.any(1) & picked.any(1), _SURE + even - least.log(), 0.0)
        stream = Stream(mix_rows(state.seeds, state.step), 0.0, len(state), state.tokens.device)
        key = torch.where(weight > 0, stream.log_uniform(1, BRANCH).squeeze(1) / weight, -torch.inf)
        columns = {f"state.{name}": getattr(state, name) for name in self._STATE}
        columns |= {f"reading.{name}": getattr(step.reading, name) for name in self._READING}
        columns["reading.peak"] = step.reading.confidence if step.reading.peak is None else step.reading.peak
        columns |= {
            "candidates": choice.candidates,
            "eligible": step.eligible,
            "chosen": choice.mask,
            "taken": revealed,
        }
        columns |= {"score": choice.score, "budget": choice.budget, "progress": step.progress}
        self._keep(state.row, key, columns)

    def _keep(self, row: Tensor, key: Tensor, columns: dict[str, Tensor]) -> None:
        if self._key is None:
            self._key = key.new_full((self.rows, self.states), -torch.inf)
            for name, column in columns.items():
                self._columns[name] = column.new_zeros(self.rows, self.states, *column.shape[1:])
        lowest, slot = self._key[row].min(1)
        better = key > lowest
        self._key[row, slot] = torch.where(better, key, lowest)
        for name, column in columns.items():
            store = self._columns[name]
            before = store[row, slot]
            store[row, slot] = torch.where(better.view(-1, *[1] * (column.dim() - 1)), column, before)

    def chosen(self, start: State) -> _Visit:
        """The kept states, row by row."""
        assert self._key is not None
        row, slot = torch.isfinite(self._key).nonzero().unbind(1)
        columns = {name: store[row, slot] for name, store in self._columns.items()}
        state = replace(start[row], **{name: columns[f"state.{name}"] for name in self._STATE})
        reading = Reading(*(columns[f"reading.{name}"] for name in (*self._READING, "peak")))
        names = ("candidates", "eligible", "chosen", "taken", "score", "budget", "progress")
        return _Visit(state, reading, *(columns[name] for name in names))


def _finished(
    visit: _Visit,
    part: Tensor,
    alternative: Tensor,
    order: Order,
    decoding: Decoding,
    model: Model,
    native: Result,
) -> tuple[Tensor, Cost]:
    """[n,L], what some branches end in, and what that took.

    Args:
        part: [n] the state of each. alternative: [n] the position that takes the place of the native one.
    """
    column = visit.native[part].unsqueeze(1)
    forced = visit.taken[part].scatter(1, column, False).scatter(1, alternative.unsqueeze(1), True)
    before = visit.state[part]
    active = torch.ones(len(part), dtype=torch.bool, device=part.device)
    state = commit(before, visit.reading.tokens[part], forced, visit.eligible[part], active, decoding)
    timed = depends_on_step(decoding.count) or order.draws or decoding.signal.needs_noise
    # What is drawn belongs to a step: with fewer steps a branch would no longer share it with its native decoding.
    single = isinstance(decoding.count, Fixed) and decoding.count.m == 1 and decoding.revoke is None and not timed
    continued = replace(decoding, together=_TOGETHER) if single and decoding.together is None else decoding
    tokens, cost = native.tokens[before.row], Cost(branches=len(part))
    going = torch.arange(len(part), device=part.device)
    while len(going):
        # A host that revokes comes back by no rule that could be seen from its reveals.
        until = None if decoding.revoke is not None else state.step + _LOOK
        result = advance(model, state, order, continued, until=until)
        state = result.state
        hidden = state.tokens == decoding.mask_id
        over = torch.ones_like(going, dtype=torch.bool) if until is None else ~competing(state, decoding).any(1)
        rejoined = torch.zeros_like(over) if until is None else _came_back(state, hidden, native, timed) & ~over
        tokens[going[over]] = state.tokens[over]
        cost += Cost(rejoined=int(rejoined.sum()), calls=int(result.row_nfe.sum()))
        rest = (~over & ~rejoined).nonzero().flatten()
        going, state = going[rest], state[rest]
    return tokens, cost


def _came_back(state: State, hidden: Tensor, native: Result, timed: bool) -> Tensor:
    """[n] bool: the canvas is one that the native decoding had as well.

    That is so if what is revealed was revealed there by some step t, with the same tokens, and nothing else was.

    Args:
        hidden: [n,L] bool, what is still masked. timed: what follows depends on the step, so that t must agree as well.
    """
    steps, tokens = native.step_map[state.row], native.tokens[state.row]
    revealed = torch.where(hidden, 0, steps)
    latest = revealed.amax(1)
    # What the native decoding never revealed stands behind the end of its text.
    earliest_hidden = torch.where(hidden & (steps > 0), steps, torch.iinfo(steps.dtype).max).amin(1)
    same = ((state.tokens == tokens) | hidden).all(1) & (earliest_hidden > latest)
    return same & (state.step == latest) if timed else same
