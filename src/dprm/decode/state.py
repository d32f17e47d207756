"""The state of a decoding: canvases that can be forked, and continued from where they are."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order import Reading
from dprm.order.checks import check_count
from dprm.order.noise import row_seeds


@dataclass
class State:
    """B canvases in the middle of their decoding.

    Attributes:
        tokens: [B,L] int64, the canvases.
        given: [B,L] bool, the positions that were visible from the start and are never touched.
        step_map: [B,L] int32, the 1-based step at which each position was revealed; 0 = given or still masked.
        initial: [B] int64, masked positions at the start.
        seeds: [B] int64, the random stream of every row.
        redrawn: [B,L] int32, how often a revealed token was taken back; its value is drawn anew then, and only then.
        step: steps made so far.
        window, window_step: [B] int64, the window each row is in, and its steps there.
        reading: the last reading, for signals with a history.
    """

    tokens: Tensor
    given: Tensor
    step_map: Tensor
    initial: Tensor
    seeds: Tensor
    redrawn: Tensor
    step: int
    window: Tensor
    window_step: Tensor
    reading: Reading | None = None

    @classmethod
    def start(cls, canvas: Tensor, mask_id: int, seed: int | Tensor) -> State:
        """A fresh state: every position that holds `mask_id` is to be revealed."""
        masked = canvas == mask_id
        counts = masked.sum(1)
        return cls(
            tokens=canvas.clone(),
            given=~masked,
            step_map=torch.zeros_like(canvas, dtype=torch.int32),
            initial=counts,
            seeds=row_seeds(seed, len(canvas), canvas.device),
            redrawn=torch.zeros_like(canvas, dtype=torch.int32),
            step=0,
            window=torch.full_like(counts, -1),
            window_step=torch.zeros_like(counts),
        )

    def __getitem__(self, rows: Tensor) -> State:
        """The state of some rows: an index or a mask over rows. Repeated rows are independent copies."""
        part = copy.copy(self)
        for name in ("tokens", "given", "step_map", "initial", "seeds", "redrawn", "window", "window_step"):
            setattr(part, name, getattr(self, name)[rows].clone())
        part.reading = None if self.reading is None else self.reading[rows]
        return part

    def fork(self, copies: int, seed: int | Tensor | None = None) -> State:
        """Every row `copies` times, one after the other; the steps so far are paid once.

        The copies share their random numbers, so that what differs between them is what is done to them; pass `seed`
        to give each its own.
        """
        check_count("copies", copies, 1)
        rows = torch.arange(len(self.tokens), device=self.tokens.device).repeat_interleave(copies)
        forked = self[rows]
        if seed is not None:
            forked.seeds = row_seeds(seed, len(rows), rows.device)
        return forked

    def reveal(self, position: Tensor, token: Tensor) -> State:
        """A copy in which row b has token[b] at position[b], revealed in the step that was last made.

        Args:
            position, token: [B] int64. Branching forces an alternative this way and continues with the same decoder.
        """
        rows = torch.arange(len(self.tokens), device=self.tokens.device)
        forced = self[rows]
        forced.tokens[rows, position] = token
        forced.step_map[rows, position] = self.step
        return forced
