"""A fit under way: what it works on, what it has spent, and what is kept of it.

An estimator is plain code that asks a run for rewards of an order, for branches, for trajectories. Each answer is a
pure function of what was asked, so it is kept under a word for that, piece by piece; a fit that was killed is simply
run again, finds what it has already, and ends in the same bits. Estimators that ask the same share the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
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
    """

    host: Host
    calls: int
    folder: Path | None = None
    seed: int = 0
    rows: int = 512
    on_progress: Callable[[int, str], None] | None = None
    cost: Cost = field(default_factory=Cost)
    shuffled: Policy | None = None
    _taken: int = 0

    def __post_init__(self) -> None:
        check_count("calls", self.calls, 64)
        check_count("seed", self.seed, 0)
        if self.folder is not None:
            claim(self.folder)
        self.model = self.host.model()
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

        def answers(first: int) -> Iterator[tuple[int, Columns, Cost]]:
            for start in range(first, len(problems), self.rows):
                batch = problems[start : start + self.rows]
                result = Decode(order).result(self.host, batch, self.seed, self.model)
                scores = self.host.scores(batch, result.tokens.cpu())
                spent = Cost(rollouts=len(batch), calls=int(result.row_nfe.sum()))
                yield start + len(batch), {"scores": scores}, spent

        scores = self._kept("trial", word(order.policy().digest, problems.key), len(problems), answers)["scores"]
        return self.host.reward(scores)

    def branches(self, order: Order, problems: Problems, branching: Branching, turn: int = 0) -> Branches:
        """Branches from the decodings of all problems under an order, with the random numbers of a turn."""
        together = max(1, self.rows // (branching.states * branching.alternatives))

        def collected(first: int) -> Iterator[tuple[int, Columns, Cost]]:
            for start in range(first, len(problems), together):
                batch = problems[start : start + together]
                seed = mix(self.seed, turn)
                branches, spent = branching.collect(self.host, batch, order, self.model, seed, self.rows)
                yield start + len(batch), branches.tensors(), spent

        identity = word(order.policy().digest, problems.key, branching, turn)
        return Branches.from_tensors(self._kept("branches", identity, len(problems), collected))

    def trajectories(self, order: Order, problems: Problems, turn: int, temperature: float | None = None) -> Columns:
        """Decodings under an order that explores: row [n] and cell [n] of every decision, scores [N,J]."""
        way = Decode(order, temperature)

        def decoded(first: int) -> Iterator[tuple[int, Columns, Cost]]:
            for start in range(first, len(problems), self.rows):
                batch = problems[start : start + self.rows]
                result = way.result(self.host, batch, mix(self.seed, turn), self.model)
                row, cell = result.trace.events()
                scores = self.host.scores(batch, result.tokens.cpu())
                spent = Cost(rollouts=len(batch), calls=int(result.row_nfe.sum()))
                yield start + len(batch), {"row": row.cpu() + start, "cell": cell.cpu(), "scores": scores}, spent

        return self._kept("trajectories", word(way.spec(), problems.key, turn), len(problems), decoded)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def _kept(
        self, kind: str, identity: str, count: int, work: Callable[[int], Iterator[tuple[int, Columns, Cost]]]
    ) -> Columns:
        """The columns of `count` problems, from the file that has them or by doing what is left.

        Args:
            work: from the number of problems done: (problems done, columns of the piece, its cost), piece after piece.
        """
        file = None if self.folder is None else self.folder / f"{kind}-{word(self._owner, identity, self.seed)}.piece"
        done, parts, cost = 0, list[Columns](), Cost()
        if file is not None and file.is_file():
            columns, header = read_tensors(file, _KIND)
            parts, cost, done = [columns], Cost.of_notes(header["cost"]), header["done"]
        before, saved = self.cost, time.monotonic()
        self.cost = before + cost
        self._show(kind)
        if done < count:
            for reached, piece, spent in work(done):
                done = reached
                parts.append(piece)
                cost += spent
                self.cost = before + cost
                if file is not None and (done >= count or time.monotonic() - saved > _SAVED_EVERY):
                    parts = [_joined(parts)]
                    write_tensors(file, parts[0], {"kind": _KIND, "done": done, "cost": cost.notes()})
                    saved = time.monotonic()
                self._show(kind)
        return _joined(parts)

    def _show(self, kind: str) -> None:
        if self.on_progress is not None:
            self.on_progress(self.cost.calls, kind)


def _joined(parts: list[Columns]) -> Columns:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
