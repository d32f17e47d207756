"""Branching: at states that the order visits, put another position first, finish with the same decoder, and compare.

The common prefix is paid once: canvases are forked where they part. Native and alternative share model, tokens, random
numbers and continuation, so the difference of their terminal rewards is due to the one choice that differs.

Branches go where they can tell something. A state is drawn ∝ −log(confidence of what was chosen there) + ε: where the
order is sure, every alternative ends the same way. Not so where it reveals many positions a step: the sure ones may be
saved to go with unsure ones later, so some states are drawn evenly. Alternatives are drawn without replacement ∝
e^{τ·score}: with τ < 1 positions that the order would hardly take are tried as well, and none counts as further behind
the best than ten log odds. Two certain positions are not compared.

Some branches come back: alternative and native choice are both revealed a few steps later, with the same tokens, and
the canvas is that of the native decoding again. All that follows is the same, or has the same law where the order
draws. Such a branch is not continued; its difference is 0.

Where one position is revealed a step, branches reveal with it all that is surer than .99: what is certain stays what it
is, whenever it is revealed, and a third of the model calls is saved. Where several are, a certain one may have been
saved to go with an unsure one, and each waits for its turn.

Shapes: B problems, S states, K alternatives, m positions a step, L positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.decode.loop import Denoiser
from dprm.decode.state import State
from dprm.fit.branches import Branches
from dprm.fit.cost import Cost
from dprm.host.host import Host, Problems
from dprm.host.rollout import run
from dprm.order import Choice, Order, Reading
from dprm.order.head import Sight
from dprm.order.noise import BRANCH, Stream, mix, mix_rows

_SURE = 0.002
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
        even: share of the states drawn evenly, times 1 − 1/m: none where one position is revealed a step.
        width: positions revealed a step; None: the host's own budget, which must then be a number.
        rows: canvases decoded together; changes the time, not the result.
        seed: of where and what.
    """

    states: int = 4
    alternatives: int = 4
    temper: float = 0.3
    even: float = 0.5
    width: int | None = None
    rows: int = 512
    seed: int = 0

    def collect(self, host: Host, problems: Problems, order: Order, denoiser: Denoiser | None = None) -> Branches:
        """Branch from the decodings of all problems under `order`."""
        model = host.denoiser() if denoiser is None else denoiser
        parts = [
            self._collect(host, problems[start : start + self.rows], order, model)
            for start in range(0, len(problems), self.rows)
        ]
        return Branches.joined(parts)

    def _collect(self, host: Host, problems: Problems, order: Order, model: Denoiser) -> Branches:
        width = positions_a_step(host, self.width)
        begin = State.start(problems.canvas, host.mask_id, mix_rows(problems.key, mix(self.seed)))
        visits: list[_Visit] = []

        def on_step(state: State, reading: Reading, choice: Choice) -> None:
            # Where a host holds positions back they are picked last: among the first are those of the candidates.
            picked = choice.picked[:, :width]
            visits.append(_Visit(state.tokens, reading, choice.candidates, picked, choice.score))

        native = run(host, begin, order, denoiser=model, budget=width, on_step=on_step)
        reward = host.reward(problems, native.tokens.cpu()).float().to(begin.tokens.device)
        stream = Stream(begin.seeds, 0.0, len(problems), begin.tokens.device)
        row, step = self._states(visits, stream, width)
        visit = _Visit.at(visits, row, step)
        state = begin[row]
        state.tokens = visit.tokens
        chosen, native_place, alternative, kept = self._alternatives(visit, state, step, width)
        gain = torch.zeros(alternative.shape, device=alternative.device)
        cost = Cost(len(problems), int(kept.sum()), calls=int(native.row_nfe.sum()))
        path = torch.stack([*(visit.tokens for visit in visits), native.tokens])
        branch, place = kept.nonzero().unbind(1)
        # Canvases with as much left to do finish together.
        near = (visit.tokens == host.mask_id).sum(1)[branch].argsort()
        branch, place = branch[near], place[near]
        for start in range(0, len(branch), self.rows):
            part, which = branch[start : start + self.rows], place[start : start + self.rows]
            forced = chosen[part].scatter(1, alternative[part, which].unsqueeze(1), True)
            forked = state[part]
            forked.tokens = torch.where(forced, visit.reading.tokens[part], forked.tokens)
            tokens, spent = _finished(host, forked, order, model, width, path[:, row[part]])
            posed = problems[row[part]]
            gain[part, which] = host.reward(posed, tokens.cpu()).float().to(gain.device) - reward[row[part]]
            cost += spent
        return Branches(
            sight=visit.sight(host, state, width),
            group=problems.key[row],
            native=native_place,
            alternative=alternative,
            kept=kept,
            gain=gain,
            cost=cost,
        ).to("cpu")

    def _states(self, visits: list[_Visit], stream: Stream, width: int) -> tuple[Tensor, Tensor]:
        """row [S] and step [S]: for every problem, `states` different steps that leave a choice."""
        unsure = torch.stack([visit.unsure(width) for visit in visits], dim=1)
        clock = stream.log_uniform(len(visits), BRANCH).neg_()
        even = self.even * (1.0 - 1.0 / width)
        law = torch.where(unsure > 0, (1.0 - even) * unsure / unsure.mean(1, keepdim=True) + even, 0.0)
        race = law / clock
        step = race.topk(min(self.states, len(visits)), dim=1).indices
        row, column = (race.gather(1, step) > 0).nonzero().unbind(1)
        return row, step[row, column]

    def _alternatives(
        self, visit: _Visit, state: State, step: Tensor, width: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """chosen [S,L] without the position that is replaced, that position [S], its alternatives [S,K], kept [S,K]."""
        rows, length = visit.candidates.shape
        stream = Stream(state.seeds, step.float() / length, rows, visit.candidates.device)
        picked = visit.picked
        lot = (stream.log_uniform(1, BRANCH, turn=1).exp() * picked.shape[1]).long().clamp(max=picked.shape[1] - 1)
        native = picked.gather(1, lot)
        chosen = torch.zeros_like(visit.candidates).scatter(1, picked, True)
        doubtful = visit.reading.confidence < _CERTAIN
        free = visit.candidates & ~chosen & (doubtful | doubtful.gather(1, native))
        noise = stream.log_uniform(length, BRANCH, turn=2).neg_().log_().neg_()
        score = torch.where(free, visit.score, -torch.inf)
        score = score.maximum(score.amax(1, keepdim=True) - _BEHIND)
        keys = torch.where(free, self.temper * score + noise, -torch.inf)
        top = keys.topk(min(self.alternatives, length), dim=1)
        return chosen.scatter(1, native, False), native.squeeze(1), top.indices, torch.isfinite(top.values)


@dataclass
class _Visit:
    """One step of a batch of decodings, or one step of each of several."""

    tokens: Tensor
    reading: Reading
    candidates: Tensor
    picked: Tensor
    score: Tensor

    @classmethod
    def at(cls, visits: list[_Visit], row: Tensor, step: Tensor) -> _Visit:
        """Row row[s] at step[s], for every s."""

        def gathered(columns: list[Tensor]) -> Tensor:
            return torch.stack(columns)[step, row]

        reading = Reading(
            *(
                gathered([getattr(visit.reading, name) for visit in visits])
                for name in ("tokens", "confidence", "margin", "entropy")
            )
        )
        others = (gathered([getattr(visit, name) for visit in visits]) for name in ("candidates", "picked", "score"))
        return cls(gathered([visit.tokens for visit in visits]), reading, *others)

    def unsure(self, width: int) -> Tensor:
        """[B] float32: how unsure the least sure pick was; 0 where no alternative was left."""
        least = self.reading.confidence.gather(1, self.picked).amin(1)
        free = self.candidates.sum(1) > width
        return torch.where(free, _SURE - least.clamp(min=1e-6).log(), 0.0)

    def sight(self, host: Host, state: State, width: int) -> Sight:
        """What the decision showed."""
        masked = (self.tokens == host.mask_id).sum(1)
        aux = host.aux(state, self.reading) if host.aux_states > 1 else None
        progress = 1.0 - masked / state.initial.clamp(min=1)
        return Sight.of(self.reading, self.candidates, width, progress, aux)


def _finished(
    host: Host, forked: State, order: Order, model: Denoiser, width: int, path: Tensor
) -> tuple[Tensor, Cost]:
    """[N,L], what branches end in, and what that took.

    Args:
        forked: their states after the choice that differs. path: [T,N,L], the native decodings they left, step by step.
    """

    def with_the_certain(state: State, reading: Reading, choice: Choice) -> None:
        certain = choice.candidates & (reading.confidence > _TOGETHER)
        state.tokens = torch.where(certain, reading.tokens, state.tokens)

    on_step = with_the_certain if width == 1 else None
    tokens, cost = path[-1].clone(), Cost()
    going = torch.arange(len(tokens), device=tokens.device)
    state = forked
    while len(going):
        ended = run(host, state, order, denoiser=model, budget=width, until=state.step + _LOOK, on_step=on_step)
        state = ended.state
        hidden = (state.tokens == host.mask_id).sum(1)
        # The native canvas with as much left to do.
        native = path[-(-(state.initial - hidden) // width), going]
        same, done = (state.tokens == native).all(1), hidden == 0
        tokens[going[done]] = state.tokens[done]
        cost += Cost(rejoined=int((same & ~done).sum()), calls=int(ended.row_nfe.sum()))
        left = (~same & ~done).nonzero().flatten()
        going, state = going[left], state[left]
    return tokens, cost


def positions_a_step(host: Host, width: int | None) -> int:
    """The number of positions a step, where it is one number."""
    found = host.budget if width is None else width
    if not isinstance(found, int):
        raise ValueError(f"width is {found}: branching needs a fixed number of positions a step")
    return found
