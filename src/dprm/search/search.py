"""Hierarchical trajectory search (Prism's): a way of answering, around any host, any order and any verifier.

N branches of a question are decoded together. At a prune every branch is filled with what the model would say now, the
fills are verified, the best few parents stay, and copies of them with some tokens masked again take the places of the
others. The survivors are decoded to their ends, verified, and vote. Nothing is decoded to fill: the model has just said
what it would reveal. With one branch and no prune this is plain decoding.

A `fresh` order learns inside the search: every question has a table of its own, which is credited with the verifier's
score of each branch for the reveals since the last prune. The terminal reward is never seen. The result does not depend
on how many questions are searched together. Shapes: B questions, W branches a question, K survivors, L positions.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from dprm.decode.counts import CountRule
from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model, Step, advance, begin, competing
from dprm.decode.trace import Trace
from dprm.host.host import Host, Problems
from dprm.host.identity import spec, word
from dprm.host.rollout import CALLS, Rollout
from dprm.order.checks import check_count, check_number
from dprm.order.noise import mix, mix_rows
from dprm.order.order import Order
from dprm.order.stats import Stats
from dprm.search.branches import Branches
from dprm.search.ranks import ranks_filled
from dprm.search.schedule import Schedule
from dprm.search.verify import Verifier, verified
from dprm.search.vote import voted

VERIFIER = "verifier"
# The columns of a rollout that count what was decided.
_COUNTED = ("decisions", "changed", "picks", "ready", "gate")


@dataclass(frozen=True)
class Search:
    """Search around a host.

    Attributes:
        verifier: scores finished answers.
        schedule: how wide the search is, step by step.
        parents: branches that stay at a prune as they are.
        remask: half of so many doubled least sure tokens of a copy are masked again.
        share: of the survivors, how many vote.
        temperature, count: of the tokens, positions a step; None: the host's own.
        order: that all branches are decoded by; None: the host's own.
        fresh: the order is learned anew in every question, from no evidence, or from `prior`.
        prior: evidence of other questions that a fresh table starts with. weight: how much of it.
        answer_of: (canvas [L]) → what it says, in a form in which equal answers are equal; None: its tokens.
    """

    verifier: Verifier
    schedule: Schedule = field(default_factory=Schedule)
    parents: int = 2
    remask: int = 12
    share: float = 0.6
    temperature: float | None = 0.7
    count: CountRule | None = None
    order: Order | None = None
    fresh: bool = False
    prior: Stats | None = None
    weight: float = 1.0
    answer_of: Callable[[Tensor], Hashable] | None = None

    def __post_init__(self) -> None:
        check_count("parents", self.parents, 1)
        check_count("remask", self.remask, 0)
        check_number("share", self.share, 0.0, 1.0, open_low=True)
        check_number("weight", self.weight, 0.0, 1.0)
        if self.fresh and (self.order is None or self.order.head is not None):
            raise ValueError("fresh needs an order whose settings the table of every question has, and no head")
        if self.prior is not None and not self.fresh:
            raise ValueError("prior is given: expected fresh as well, whose tables start with it")

    def spec(self) -> Any:
        order = None if self.order is None else [self.order.policy().digest, self.order.explore]
        prior = None if self.prior is None else word(self.prior.schema, self.prior.moments)
        plain = {name: getattr(self, name) for name in ("parents", "remask", "share", "temperature", "fresh", "weight")}
        functions = spec(self.verifier), spec(self.answer_of), spec(self.count)
        return ["search", asdict(self.schedule), plain, order, prior, *functions]

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """The voted answers of a batch of questions; calls are those of all branches, and of the verifier."""
        began = time.perf_counter()
        own = {"temperature": self.temperature, "count": self.count}
        decoding = host.with_decoding(**{name: value for name, value in own.items() if value is not None}).decoding
        running = _Running(self, problems, model, decoding, self._acting(len(problems), decoding))
        start = begin(problems.canvas, decoding, mix_rows(problems.key, mix(seed)), problems.context)
        branches = Branches.start(start, self.schedule.width)
        done = 0
        for step, width in self.schedule.prunes:
            branches = running.decoded(branches, done, step)
            parents = branches.ranked(running.judged(branches))[:, : min(self.parents, width)]
            branches, done = branches.grown(parents, width, self.remask, decoding.mask_id), step
        branches = running.decoded(branches, done, None)
        score = running.judged(branches)
        return self._voted(host, problems, branches, score, running, time.perf_counter() - began)

    def _acting(self, questions: int, decoding: Decoding) -> Order:
        """The order of this batch; a fresh one has a table for every question."""
        if self.order is None:
            return decoding.order()
        if not self.fresh:
            return self.order
        own = self.order.policy()
        order = Order(
            *own.cells.shape,
            beta=own.beta,
            guidance=own.guidance,
            warm=own.gate.warm,
            switch=own.gate.switch,
            ready=own.gate.ready,
            signal=self.order.signal,
            warm_signal=self.order.warm_signal,
            rule=own.rule,
            shortlist=own.shortlist,
            explore=self.order.explore,
            baseline=own.baseline,
            shrunken=own.shrunken,
            tables=questions,
        )
        if self.prior is not None:
            order.merge(self.prior.forget(1.0 - self.weight).repeated(questions))
        return order

    def _voted(
        self, host: Host, problems: Problems, branches: Branches, score: Tensor, running: _Running, seconds: float
    ) -> Rollout:
        """The rollout of what the survivors vote for."""
        by_score = score.view(len(problems), -1).argsort(dim=1, descending=True, stable=True)
        rows = by_score + torch.arange(len(problems), device=score.device).unsqueeze(1) * branches.width
        survivors = branches[rows]
        tokens = survivors.state.tokens.view(*rows.shape, -1).cpu()
        says = self.answer_of or _tokens_of
        scores_of = score.view(len(problems), -1).gather(1, by_score).tolist()
        winner = torch.tensor(
            [
                voted([says(canvas) for canvas in answers], listed, self.share)
                for answers, listed in zip(tokens, scores_of, strict=True)
            ]
        )
        question = torch.arange(len(problems))
        row = rows.cpu()[question, winner]
        judged = torch.stack([host.scores(problems, tokens[:, rank]) for rank in range(rows.shape[1])], dim=1)
        return Rollout(
            tokens=tokens[question, winner],
            step_map=branches.state.step_map.cpu()[row],
            confidence=branches.confidence.cpu()[row],
            scores=ranks_filled(host, judged, winner),
            calls={CALLS: running.calls.cpu(), VERIFIER: running.verifier_calls.cpu()},
            **{name: column.cpu() for name, column in running.counted.items()},
            seconds=torch.full((len(problems),), seconds / max(1, len(problems))),
        )


class _Running:
    """A search under way: what it has asked of the model, and what its order has learned.

    Attributes:
        calls, verifier_calls: [B] int64. counted: [B] each, the decisions of all branches, as in `Rollout`.
    """

    def __init__(self, search: Search, problems: Problems, model: Model, decoding: Decoding, order: Order):
        self.search, self.problems, self.model = search, problems, model
        self.decoding, self.order = decoding, order
        none = torch.zeros(len(problems), dtype=torch.int64, device=problems.canvas.device)
        self.calls = self.verifier_calls = none
        self.counted = {name: none.float() if name == "gate" else none for name in _COUNTED}
        self.trace: Trace | None = None

    def decoded(self, branches: Branches, done: int, until: int | None) -> Branches:
        """All branches decoded on from a step of the search, to another or to their ends."""
        filled = branches.filled.clone()
        schedule = itertools.count(done)

        def begun() -> None:
            # The gate of a fresh order opens with the steps of the search.
            if self.search.fresh:
                self.order.step = next(schedule)

        def seen(step: Step) -> None:
            filled[step.state.row] = step.reading.tokens
            begun()

        begun()

        question = branches.question
        table = question if self.order.cells.tables > 1 else None
        result = advance(self.model, branches.state, self.order, self.decoding, table=table, until=until, on_step=seen)
        self.calls = self.calls + self._by_question(question, result.row_nfe)
        for name in _COUNTED:
            column = getattr(result.trace, name)
            self.counted[name] = self.counted[name] + self._by_question(question, column)
        confidence = torch.where(result.trace.confidence.isnan(), branches.confidence, result.trace.confidence)
        finished = ~competing(result.state, self.decoding).any(1, keepdim=True)
        self.trace = result.trace
        return Branches(result.state, branches.width, confidence, torch.where(finished, result.tokens, filled))

    def judged(self, branches: Branches) -> Tensor:
        """The verifier's score [n] of every branch; a fresh order learns from it."""
        score, calls = verified(self.search.verifier, self.problems, branches.question, branches.filled, self.model)
        self.verifier_calls = self.verifier_calls + calls.to(self.verifier_calls.device)
        if self.search.fresh and self.trace is not None:
            group = branches.question if self.order.baseline == "prompt" else None
            self.order.observe(self.trace, score, group)
        return score

    def _by_question(self, question: Tensor, column: Tensor) -> Tensor:
        return torch.zeros(len(self.problems), dtype=column.dtype, device=column.device).index_add(0, question, column)


def _tokens_of(canvas: Tensor) -> Hashable:
    return tuple(canvas.tolist())
