"""A fit under way: what it works on, what it has spent, and what is kept of it.

An estimator is plain code that asks a run for rewards of an order, for branches, for trajectories. Each answer is a
pure function of what was asked, so it is kept under a word for that, piece by piece; a fit that was killed is simply
run again, finds what it has already, and ends in the same bits. Estimators that ask the same share the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from dprm.decode.loop import Model, Result
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.host.engine import Engine, Serial, Work
from dprm.host.host import Host, Problems
from dprm.host.identity import host_word, word
from dprm.host.rollout import Decode
from dprm.order.checks import check_count
from dprm.order.files import claim, read_tensors, write_tensors
from dprm.order.noise import mix, mix_rows
from dprm.order.order import Order
from dprm.order.policy import Policy

_KIND = "dprm.piece"
# Seconds of work that a kill may cost.
_SAVED_EVERY = 5.0
# Problems whose decodings say how many calls an answer takes; problems of a fit at most, before they come again.
_PROBED, _MOST = 8, 32_768

Columns = dict[str, Tensor]
Piece = tuple[Columns, Cost]


@dataclass
class Run:
    """A fit under way.

    Attributes:
        host: with the decoding and the preference that are learned for.
        calls: model calls that the fit may take, about.
        folder: where pieces are kept; None keeps none. seed: of everything.
        rows: canvases decoded together; changes the time, not the result.
        shuffled: the control that an estimator leaves: what it learns of the same numbers without their meaning.
        on_progress: called with (calls so far, what is being done).
        on: the engine that does the work; changes the time, not the result.
    """

    host: Host
    calls: int
    folder: Path | None = None
    seed: int = 0
    rows: int = 512
    on_progress: Callable[[int, str], None] | None = None
    on: Engine = field(default_factory=Serial)
    cost: Cost = field(default_factory=Cost)
    shuffled: Policy | None = None
    _taken: int = 0

    def __post_init__(self) -> None:
        check_count("calls", self.calls, 64)
        check_count("seed", self.seed, 0)
        if self.folder is not None:
            claim(self.folder)
        self._owner = host_word(self.host)
        self.reserve(_PROBED)

    def reserve(self, count: int) -> None:
        """Have this many problems of the fit split at hand, or as many as there are."""
        self._pool = self.host.problems("fit", max(1, min(count, _MOST)), self.seed)
        if not len(self._pool):
            raise ValueError(f"host {self.host.name} has no problems of the fit split: a fit needs at least one")
        self._pool.check("problems of the fit split")

    @cached_property
    def steps(self) -> float:
        """Mean model calls of an answer under the host's order, of the first few problems; they are counted."""
        few = self.host.problems("fit", _PROBED, self.seed)
        before = self.cost.calls
        self.rewards(self.host.decoding.order(), few)
        return max(1.0, (self.cost.calls - before) / len(few))

    def take(self, count: int) -> Problems:
        """The next problems; when there are no more, the same again with other random numbers."""
        index = torch.arange(self._taken, self._taken + count)
        self._taken += count
        problems = self._pool[index % len(self._pool)]
        lap = (index // len(self._pool)).to(problems.key.device)
        again = mix_rows(problems.key, lap) & (2**62 - 1)
        return replace(problems, key=torch.where(lap > 0, again, problems.key), group=problems.groups)

    @property
    def groups(self) -> Tensor:
        """[n] int64 on the CPU, the groups of the problems that were taken so far."""
        return self._pool.groups[: self._taken].cpu()

    # ---- what can be asked ------------------------------------------------------------------------------------------

    def rewards(self, order: Order, problems: Problems) -> Tensor:
        """[N] float64, the terminal rewards of all problems under an order."""
        identity = word(_acting(order), problems.key)
        scores = self._kept("trial", identity, problems, self.rows, _Trial(order, self.seed))["scores"]
        return self.host.reward(scores)

    def branches(self, order: Order, problems: Problems, branching: Branching, turn: int = 0) -> Branches:
        """Branches from the decodings of all problems under an order, with the random numbers of a turn."""
        together = max(1, self.rows // (branching.states * branching.alternatives))
        identity = word(_acting(order), problems.key, branching, turn)
        work = _Branch(order, branching, mix(self.seed, turn), self.rows)
        return Branches.from_tensors(self._kept("branches", identity, problems, together, work))

    def trajectories(self, order: Order, problems: Problems, turn: int, temperature: float | None = None) -> Columns:
        """Decodings under an order that explores: row [n] and cell [n] of every decision, scores [N,J]."""
        way = Decode(order, temperature)
        identity = word(_acting(order), order.explore, temperature, problems.key, turn)
        return self._kept("trajectories", identity, problems, self.rows, _Explore(way, mix(self.seed, turn)))

    def kept(self, kind: str, question: object, problems: Problems, rows: int, work: Work[Piece]) -> Columns:
        """What an estimator collects in its own way, problem by problem.

        Args:
            question: all that decides what is collected, besides host, problems and seed.
            rows: problems of a piece. work: what is done with them; small enough to be sent.
        """
        return self._kept(kind, word(question, problems.key), problems, rows, work)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def _kept(self, kind: str, identity: str, problems: Problems, rows: int, work: Work[Piece]) -> Columns:
        """The columns of all problems, from the file that has them or by doing what is left.

        Args:
            rows: problems of a piece. work: what is done with them; a column "row" counts from the first of the piece.
        """
        file = None if self.folder is None else self.folder / f"{kind}-{word(self._owner, identity, self.seed)}.piece"
        done, parts, cost = 0, list[Columns](), Cost()
        if file is not None and file.is_file():
            columns, header = read_tensors(file, _KIND)
            parts, cost, done = [columns], Cost.of_notes(header["cost"]), header["done"]
        before, saved = self.cost, time.monotonic()
        self.cost = before + cost
        self._show(kind)
        starts = range(done, len(problems), rows)
        pieces = ((work, problems[start : start + rows]) for start in starts)
        for start, (piece, spent) in zip(starts, self.on.each(self.host, pieces), strict=True):
            if "row" in piece:
                piece = {**piece, "row": piece["row"] + start}
            done = min(start + rows, len(problems))
            parts.append(piece)
            cost += spent
            self.cost = before + cost
            if file is not None and (done == len(problems) or time.monotonic() - saved > _SAVED_EVERY):
                parts = [_joined(parts)]
                write_tensors(file, parts[0], {"kind": _KIND, "done": done, "cost": cost.notes()})
                saved = time.monotonic()
            self._show(kind)
        return _joined(parts)

    def _show(self, kind: str) -> None:
        if self.on_progress is not None:
            self.on_progress(self.cost.calls, kind)


# ---- the work: pure, and small enough to be sent ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Trial:
    """Decode under an order: scores."""

    order: Order
    seed: int

    def __call__(self, host: Host, model: Model, problems: Problems) -> Piece:
        result = Decode(self.order).result(host, problems, self.seed, model)
        return {"scores": host.scores(problems, result.tokens.cpu())}, _decoding_cost(problems, result)


@dataclass(frozen=True)
class _Branch:
    """Decode under an order, and branch."""

    order: Order
    branching: Branching
    seed: int
    rows: int

    def __call__(self, host: Host, model: Model, problems: Problems) -> Piece:
        branches, spent = self.branching.collect(host, problems, self.order, model, self.seed, self.rows)
        return branches.tensors(), spent


@dataclass(frozen=True)
class _Explore:
    """Decode in a way that explores: every decision, and scores."""

    way: Decode
    seed: int

    def __call__(self, host: Host, model: Model, problems: Problems) -> Piece:
        result = self.way.result(host, problems, self.seed, model)
        row, cell = result.trace.events()
        scores = host.scores(problems, result.tokens.cpu())
        return {"row": row.cpu(), "cell": cell.cpu(), "scores": scores}, _decoding_cost(problems, result)


def _acting(order: Order) -> str:
    """Names what of an order acts; the range of the rewards that it learns from does not."""
    return replace(order.policy(), reward_range=(0.0, 1.0)).digest


def _decoding_cost(problems: Problems, result: Result) -> Cost:
    return Cost(rollouts=len(problems), calls=int(result.row_nfe.sum()))


def _joined(parts: list[Columns]) -> Columns:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
