"""The trace of a decoding: which cells were chosen, for credit, and what was seen when a position was revealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from dprm.order.choice import Choice
from dprm.order.reading import Reading


@dataclass
class Trace:
    """What `Order.observe` credits and what reports show.

    Attributes:
        cells: T maps [B,L] int32, the cell of every selection, −1 where none. Where a position is selected at most once
            all steps share one map (T = 1); elsewhere every step has its own.
        confidence: [B,L] float32, confidence of every position when it was last selected; NaN if it never was.
        decisions, changed: [B] int64, steps in which the row chose, and those whose choice was not the host's.
        picks, ready: [B] int64, positions selected, and those of them in fully trusted cells.
        gate: [B] float32, sum of the gates of the selected positions.
    """

    cells: list[Tensor]
    confidence: Tensor
    decisions: Tensor
    changed: Tensor
    picks: Tensor
    ready: Tensor
    gate: Tensor
    selected_once: bool

    @classmethod
    def start(cls, canvas: Tensor, selected_once: bool) -> Trace:
        """An empty trace of canvases [B,L]."""
        none = torch.zeros(len(canvas), dtype=torch.int64, device=canvas.device)
        confidence = torch.full_like(canvas, torch.nan, dtype=torch.float32)
        return cls([], confidence, none, none.clone(), none.clone(), none.clone(), none.float(), selected_once)

    def record(self, reading: Reading, choice: Choice) -> None:
        """Take down one step. No value is looked at: nothing waits for an accelerator."""
        if not self.cells or not self.selected_once:
            self.cells.append(torch.full_like(choice.mask, -1, dtype=torch.int32))
        # Chosen for the first time, a position still has -1 here: the larger of the two is the cell.
        credited = torch.where(choice.kept, choice.picked_cell, -1)
        self.cells[-1].scatter_reduce_(1, choice.picked, credited, "amax")
        self.confidence = torch.where(choice.mask, reading.confidence, self.confidence)
        self.decisions += choice.kept.any(1)
        self.changed += choice.changed
        self.picks += choice.kept.sum(1)
        self.ready += choice.picked_ready.sum(1)
        self.gate += choice.picked_gate.sum(1)

    def __getitem__(self, rows: Tensor) -> Trace:
        """The trace of some rows, by index."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return Trace([cells[rows] for cells in self.cells], selected_once=self.selected_once, **columns)

    @classmethod
    def joined(cls, parts: Sequence[Trace]) -> Trace:
        """Several traces, one after the other; a shorter one has no selections in the steps it lacks."""
        steps = max(len(part.cells) for part in parts)
        padded = [
            F.pad(torch.stack(part.cells), (0, 0, 0, 0, 0, steps - len(part.cells)), value=-1)
            if part.cells
            else torch.full((steps, *part.confidence.shape), -1, dtype=torch.int32, device=part.confidence.device)
            for part in parts
        ]
        cells = list(torch.cat(padded, dim=1)) if steps else []
        columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in _COLUMNS}
        return cls(cells, selected_once=parts[0].selected_once, **columns)

    @property
    def rows(self) -> int:
        """B."""
        return len(self.decisions)

    def events(self) -> tuple[Tensor, Tensor]:
        """The decisions to credit: row [n] and cell [n]."""
        maps = torch.stack(self.cells) if self.cells else self.decisions.new_zeros(0, 1, 1) - 1
        return (maps >= 0).nonzero()[:, 1], maps[maps >= 0].long()


_COLUMNS = tuple(f.name for f in fields(Trace) if f.name not in ("cells", "selected_once"))
