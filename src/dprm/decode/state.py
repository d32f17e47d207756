"""The state of a decoding: canvases that can be forked, regrouped, and continued from where they are.

Everything a row needs travels with it: its step, its random numbers, its context. So a row goes on to the same bits in
whatever batch it is continued. Shapes: B rows, L positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from dprm.decode.rows import Rows, rows_at, rows_count, rows_joined
from dprm.order.checks import check_count
from dprm.order.noise import row_seeds


@dataclass(frozen=True)
class State:
    """B canvases in the middle of their decoding.

    Attributes:
        tokens: [B,L] int64, the canvases.
        given: [B,L] bool, the positions that were visible from the start and are never touched.
        step_map: [B,L] int32, the 1-based step at which each position was revealed; 0 = given or still masked.
        initial: [B] int64, masked positions at the start.
        seeds: [B] int64, the random stream of every row.
        redrawn: [B,L] int32, how often a revealed token was taken back; its value is drawn anew then, and only then.
        step: [B] int64, steps made so far.
        window, window_step: [B] int64, the window each row is in, and its steps there.
        row: [B] int64, which row of the batch at the start this is.
        context: what else belongs to the rows, see `decode.rows`.
    """

    tokens: Tensor
    given: Tensor
    step_map: Tensor
    initial: Tensor
    seeds: Tensor
    redrawn: Tensor
    step: Tensor
    window: Tensor
    window_step: Tensor
    row: Tensor
    context: Rows | None = None

    @classmethod
    def start(cls, canvas: Tensor, mask_id: int, seed: int | Tensor, context: Rows | None = None) -> State:
        """A fresh state: every position that holds `mask_id` is to be revealed."""
        if context is not None and rows_count(context) != len(canvas):
            raise ValueError(f"context has {rows_count(context)} rows: expected {len(canvas)}, one a canvas")
        masked = canvas == mask_id
        counts = masked.sum(1)
        return cls(
            tokens=canvas,
            given=~masked,
            step_map=torch.zeros_like(canvas, dtype=torch.int32),
            initial=counts,
            seeds=row_seeds(seed, len(canvas), canvas.device),
            redrawn=torch.zeros_like(canvas, dtype=torch.int32),
            step=torch.zeros_like(counts),
            window=torch.full_like(counts, -1),
            window_step=torch.zeros_like(counts),
            row=torch.arange(len(canvas), device=canvas.device),
            context=context,
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: Tensor) -> State:
        """The state of some rows, by index [n]; repeated rows are independent copies."""
        tensors = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "context"}
        return State(**tensors, context=rows_at(self.context, rows))

    @classmethod
    def joined(cls, parts: Sequence[State]) -> State:
        """Several states, one after the other."""
        names = [f.name for f in fields(cls) if f.name != "context"]
        tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(**tensors, context=rows_joined([part.context for part in parts]))

    def fork(self, copies: int, seed: int | Tensor | None = None) -> State:
        """Every row `copies` times, one after the other; the steps so far are paid once.

        The copies share their random numbers, so that what differs between them is what is done to them; pass `seed`
        to give each its own.
        """
        check_count("copies", copies, 1)
        rows = torch.arange(len(self), device=self.tokens.device).repeat_interleave(copies)
        forked = self[rows]
        return forked if seed is None else replace(forked, seeds=row_seeds(seed, len(rows), rows.device))

    def reveal(self, position: Tensor, token: Tensor) -> State:
        """A copy in which row b has token[b] at position[b], as a part of the step that comes next.

        Args:
            position, token: [B] int64.
        """
        column = position.unsqueeze(1)
        step = (self.step + 1).int().unsqueeze(1)
        return replace(
            self,
            tokens=self.tokens.scatter(1, column, token.unsqueeze(1)),
            step_map=self.step_map.scatter(1, column, step),
        )
