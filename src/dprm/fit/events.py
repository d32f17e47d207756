"""Decisions to credit that have been gathered from elsewhere than one decoding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Events:
    """row [n] and cell [n] of decisions, in so many rows; what `Order.observe` asks for."""

    rows: int
    row: Tensor
    cell: Tensor

    def events(self) -> tuple[Tensor, Tensor]:
        """As of a Choice."""
        return self.row, self.cell

    def among(self, rows: Tensor) -> Events:
        """Those of some rows [rows] bool, which are numbered anew."""
        number = torch.cumsum(rows, 0) - 1
        keep = rows[self.row]
        return Events(int(rows.sum()), number[self.row[keep]], self.cell[keep])
