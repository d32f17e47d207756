"""The trace of a decoding: which cells were chosen, for credit, and what was seen when a position was revealed."""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.order import Choice, Reading


class Trace:
    """What `Order.observe` credits and what reports show.

    Attributes:
        confidence: [B,L] float32, confidence of every position when it was last selected; NaN if it never was.
        decisions, changed: [B] int64, steps in which the row chose, and those whose choice was not the host's.
        picks, ready: [B] int64, positions selected, and those of them in fully trusted cells.
        gate: [B] float32, sum of the gates of the selected positions.
    """

    def __init__(self, like: Tensor, selected_once: bool):
        """Args: like [B,L]; selected_once: positions are never selected again, so one map of cells is enough."""
        self._selected_once = selected_once
        self._cells: list[Tensor] = []
        self.confidence = torch.full_like(like, torch.nan, dtype=torch.float32)
        self.decisions = torch.zeros(len(like), dtype=torch.int64, device=like.device)
        self.changed = torch.zeros_like(self.decisions)
        self.picks = torch.zeros_like(self.decisions)
        self.ready = torch.zeros_like(self.decisions)
        self.gate = torch.zeros_like(self.decisions, dtype=torch.float32)

    def record(self, reading: Reading, choice: Choice) -> None:
        """Take down one step. No value is looked at: nothing waits for an accelerator."""
        if not self._cells or not self._selected_once:
            self._cells.append(torch.full_like(choice.mask, -1, dtype=torch.int32))
        # Chosen for the first time, a position still has -1 here: the larger of the two is the cell.
        credited = torch.where(choice.kept, choice.picked_cell, -1)
        self._cells[-1].scatter_reduce_(1, choice.picked, credited, "amax")
        self.confidence = torch.where(choice.mask, reading.confidence, self.confidence)
        self.decisions += choice.kept.any(1)
        self.changed += choice.changed
        self.picks += choice.kept.sum(1)
        self.ready += (choice.picked_gate >= 1.0).sum(1)
        self.gate += choice.picked_gate.sum(1)

    def events(self) -> tuple[Tensor, Tensor]:
        """The decisions to credit: row [n] and cell [n]."""
        maps = torch.stack(self._cells) if self._cells else self.decisions.new_zeros(0, 1, 1) - 1
        return (maps >= 0).nonzero()[:, 1], maps[maps >= 0].long()
