"""The streaming pool: training canvases that lie on the path a decoder takes.

Every row of the pool is a sequence on its way from masked to clean, in one of K phases. One forward serves twice: for
the loss, and to advance the rows, by revealing the *true* tokens at the positions the order picks. So the model is
trained on the partly revealed canvases that its own order makes, at no extra model calls.

    row r at step s is in phase j = (s + r) mod K
    revealed after advancing to phase j: round(ρ·n) of its n answer positions, ρ ~ U[j/K, (j+1)/K), at least one masked

A row that reaches phase 0 again is replaced by a fresh sequence, of which a share ρ ~ U[0, 1/K) is shown at random. The
phases are spread evenly, so the rows to replace are every K-th: no step looks at a value on an accelerator.
Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.decode.decoding import StateOf
from dprm.host.identity import spec
from dprm.order import Order, read
from dprm.order.noise import mix
from dprm.train.masks import Canvases, Data, MaskLaw, data_word, hide, order_spec


class ProgressivePool(MaskLaw):
    """A mask law whose canvases are advanced by an order.

    Args:
        data: the sequences. rows: B, at least K.
        order: picks the positions to reveal; Order() is the confidence-progressive law.
        phases: K. seed: of the first masks and the budgets.
        state_of: the host's cell state of every position, as in `Decoding`; None: one state.
    """

    def __init__(
        self,
        data: Data,
        rows: int,
        order: Order,
        phases: int = 8,
        seed: int = 0,
        device: torch.device | str = "cpu",
        state_of: StateOf | None = None,
    ):
        if phases < 1 or rows < phases:
            raise ValueError(f"phases is {phases}: expected 1 … rows, and rows is {rows}")
        if hasattr(data, "context"):
            raise ValueError("data has a context, which rows of a pool do not keep: train with the law random")
        self.data, self.rows, self.order, self.phases = data, rows, order, phases
        self.seed, self.device, self.state_of = seed, device, state_of
        self._first_order = order_spec(order)
        self._row = torch.arange(rows, device=device)
        self._clean: Tensor | None = None
        self._noisy = self._answer = torch.empty(0)

    def spec(self) -> dict[str, Any]:
        sizes = {"rows": self.rows, "phases": self.phases, "seed": self.seed}
        how = {"order": self._first_order, "state of": spec(self.state_of)}
        return {"name": "progressive", **how, **sizes, "data": data_word(self.data)}

    def canvases(self, step: int) -> Canvases:
        if self._clean is None:
            # Copies, because rows are replaced in place and data may share memory between rows.
            self._clean, self._noisy, self._answer = (part.clone() for part in self._fresh(step, self.phase(step)))
        else:
            # In place: only the last step's loss needed the old rows, and it is done.
            rows = slice(-step % self.phases, None, self.phases)
            fresh = self._fresh(step, self.phase(step)[rows])
            self._clean[rows], self._noisy[rows], self._answer[rows] = fresh
        return Canvases(self._clean, self._noisy, self._noisy == self.data.mask_id)

    @torch.no_grad()
    def advance(self, step: int, logits: Tensor) -> None:
        """Reveal the true tokens at the positions the order picks, until every row is in its next phase."""
        assert self._clean is not None
        masked = self._noisy == self.data.mask_id
        answers = self._answer.sum(1)
        left = masked.sum(1)
        phase = (step + 1 + self._row) % self.phases
        ratio = self._ratio(phase, Draws("budgets", self.seed, step, device=self.device))
        target = (ratio * answers).round().long().minimum(answers - 1)
        # Rows that start anew are replaced by the next step anyway.
        budget = (target - (answers - left)).clamp(min=0) * (phase > 0)
        reading = read(logits, forbid=self.data.mask_id)
        # As a decoder hands it on: what is visible keeps its token.
        reading = replace(reading, tokens=torch.where(masked, reading.tokens, self._noisy))
        aux = None if self.state_of is None else self.state_of(self._noisy, reading)
        progress = 1.0 - left / answers
        choice = self.order.select(reading, masked, budget, progress, aux, seed=mix(self.seed, step))
        self._noisy = torch.where(choice.mask, self._clean, self._noisy)

    def phase(self, step: int) -> Tensor:
        """[B] the phase of every row in the canvases of this step."""
        return (step + self._row) % self.phases

    def state(self) -> dict[str, Tensor]:
        if self._clean is None:
            return {}
        return {"clean": self._clean, "noisy": self._noisy, "answer": self._answer}

    def restore(self, state: dict[str, Tensor]) -> None:
        if "clean" in state:
            self._clean = state["clean"].to(self.device)
            self._noisy, self._answer = state["noisy"].to(self.device), state["answer"].to(self.device)

    def _ratio(self, phase: Tensor, draws: Draws) -> Tensor:
        """ρ ~ U[j/K, (j+1)/K) for rows in phase j."""
        return (phase + draws.uniform(len(phase))) / self.phases

    def _fresh(self, step: int, phase: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Clean, noisy and answer of fresh sequences in these phases; what is shown is random."""
        clean, answer = self.data.batch(step, len(phase))
        draws = Draws("fresh rows", self.seed, step, device=self.device)
        shown = hide(clean, answer, self._ratio(phase, draws), self.data.mask_id, draws)
        return clean, shown.noisy, answer
