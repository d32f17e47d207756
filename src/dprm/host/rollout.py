"""Rollouts: what came of some problems; and ways: how problems are answered, at a price.

An order is one way to answer a problem; the best of K draws, values asked of continuations, or a search are others.
Every problem has its own random stream, made of the seed and its key: what happens to it does not depend on the batch
it is in, on the other problems, or on a resume. Shapes: N problems, L positions, J metrics.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import torch
from torch import Tensor

from dprm.decode.loop import Model, Result, advance, begin
from dprm.host.host import Host, Problems
from dprm.order.noise import mix, mix_rows
from dprm.order.order import Order

CALLS = "denoiser"


@dataclass
class Rollout:
    """What came of N problems.

    Attributes:
        tokens, step_map: [N,L]. confidence: [N,L], of every position when it was revealed.
        scores: [N,J] float32. calls: by kind, [N] int64, model calls each problem needed.
        decisions, changed, picks, ready, gate: [N], as in `Trace`.
        seconds: [N] float32, each problem's share of its batch.
    """

    tokens: Tensor
    step_map: Tensor
    confidence: Tensor
    scores: Tensor
    calls: dict[str, Tensor]
    decisions: Tensor
    changed: Tensor
    picks: Tensor
    ready: Tensor
    gate: Tensor
    seconds: Tensor

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def nfe(self) -> Tensor:
        """[N] int64, model calls of all kinds."""
        return torch.stack(list(self.calls.values())).sum(0)

    @classmethod
    def of(cls, result: Result, scores: Tensor, seconds: float) -> Rollout:
        """The rollout of a decoding that took so many seconds."""
        trace = result.trace
        return cls(
            tokens=result.tokens.cpu(),
            step_map=result.step_map.cpu(),
            confidence=trace.confidence.cpu(),
            scores=scores,
            calls={CALLS: result.row_nfe.cpu()},
            decisions=trace.decisions.cpu(),
            changed=trace.changed.cpu(),
            picks=trace.picks.cpu(),
            ready=trace.ready.cpu(),
            gate=trace.gate.cpu(),
            seconds=torch.full((len(scores),), seconds / max(1, len(scores))),
        )

    @classmethod
    def joined(cls, parts: Sequence[Rollout]) -> Rollout:
        """Several rollouts, one after the other."""
        return cls.from_tensors(
            {name: torch.cat([part.tensors()[name] for part in parts]) for name in parts[0].tensors()}
        )

    def __getitem__(self, rows: Tensor | slice) -> Rollout:
        """The rollout of some of the problems."""
        return Rollout.from_tensors({name: column[rows] for name, column in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Every column by name, as kept in a file."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "calls"}
        return {**plain, **{f"calls.{kind}": column for kind, column in self.calls.items()}}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> Rollout:
        """What `tensors` gave."""
        calls = {name[6:]: column for name, column in tensors.items() if name.startswith("calls.")}
        plain = {name: column for name, column in tensors.items() if not name.startswith("calls.")}
        return cls(calls=calls, **plain)


class Way(Protocol):
    """How problems are answered."""

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """The answers to one batch of problems; every problem's depends on the seed and its key alone."""

    def spec(self) -> Any:
        """Plain data that changes with everything that could change an answer."""


@dataclass(frozen=True)
class Decode:
    """Decode under an order.

    Attributes:
        order: None: the host's own. Of an order with several tables every problem has one, by its key.
        temperature: of the tokens; None: the host's own.
        path: random numbers; other paths draw others.
    """

    order: Order | None = None
    temperature: float | None = None
    path: int = 0

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        began = time.perf_counter()
        result = self.result(host, problems, seed, model)
        scores = host.scores(problems, result.tokens.cpu())
        return Rollout.of(result, scores, time.perf_counter() - began)

    def result(self, host: Host, problems: Problems, seed: int, model: Model) -> Result:
        """The decoding itself, with its trace for `Order.observe`."""
        hot = host if self.temperature is None else host.with_decoding(temperature=self.temperature)
        seeds = mix_rows(problems.key, mix(seed, self.path) if self.path else mix(seed))
        state = begin(problems.canvas, hot.decoding, seeds, problems.context)
        order = self.order or hot.decoding.order()
        tables = order.cells.tables
        table = mix_rows(problems.key, 6) % tables if tables > 1 else None
        return advance(model, state, order, hot.decoding, table=table)

    def spec(self) -> Any:
        order = None if self.order is None else [self.order.policy().digest, self.order.explore]
        return ["decode", order, self.temperature, self.path]


@dataclass(frozen=True)
class BestOf:
    """The best of K paths of a way, all but the first with tokens drawn: a control at equal model calls.

    An order that pays for continuations must beat it. The best path is chosen by the terminal reward, which favours the
    control: it is a bar, not a method.

    Attributes:
        paths: K. order: of every path; None: the host's own. temperature: of the draws.
    """

    paths: int
    order: Order | None = None
    temperature: float = 1.0

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        ways = [Decode(self.order), *(Decode(self.order, self.temperature, path) for path in range(1, self.paths))]
        return best(host, [way.answer(host, problems, seed, model) for way in ways])

    def spec(self) -> Any:
        return ["best of", self.paths, Decode(self.order).spec(), self.temperature]


def best(host: Host, rollouts: Sequence[Rollout]) -> Rollout:
    """Problem by problem the rollout of the highest reward, the first of equals; calls and seconds of all of them."""
    if not rollouts:
        raise ValueError("rollouts is empty: expected at least one path")
    winner = torch.stack([host.reward(rollout.scores) for rollout in rollouts]).argmax(0)
    row = torch.arange(len(winner))
    columns = {name: torch.stack([rollout.tensors()[name] for rollout in rollouts]) for name in rollouts[0].tensors()}
    spent = {name for name in columns if name.startswith("calls.") or name == "seconds"}
    return Rollout.from_tensors(
        {name: column.sum(0) if name in spent else column[winner, row] for name, column in columns.items()}
    )
