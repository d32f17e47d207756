"""Cells: the coarse state in which decisions share their evidence.

phase = min(P−1, ⌊P·progress⌋)    bin = min(B−1, ⌊B·confidence⌋)    cell = (phase·B + bin)·A + aux
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order.checks import check_count


@dataclass(frozen=True)
class Cells:
    """A grid of P phases × B confidence bins × A host-specific states."""

    phases: int = 8
    bins: int = 16
    aux: int = 1

    def __post_init__(self) -> None:
        for name in ("phases", "bins", "aux"):
            check_count(name, getattr(self, name), 1)
        if self.count >= 2**31:
            raise ValueError(f"{self} has {self.count} cells: at most 2^31 - 1")

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.phases * self.bins * self.aux

    @property
    def shape(self) -> tuple[int, int, int]:
        """(phases, bins, aux), the shape of a table seen as a grid."""
        return self.phases, self.bins, self.aux

    def first_of_phase(self, progress: float | Tensor) -> int | Tensor:
        """The first cell of the phase: an int for a number, [B,1] int32 for a tensor of rows."""
        if isinstance(progress, Tensor):
            phase = (progress.float() * self.phases).clamp_(max=self.phases - 1).int()
            return (phase * (self.bins * self.aux)).unsqueeze(-1)
        return min(self.phases - 1, int(self.phases * progress)) * self.bins * self.aux

    def index(self, first: int | Tensor, confidence: Tensor, aux: Tensor | None, certain: bool = True) -> Tensor:
        """int32 cell of every position, from the first cell of its phase; not `certain`: no confidence is exactly 1."""
        scaled = confidence * _number(self.bins, confidence.dtype)
        cell = (scaled.clamp_(max=self.bins - 1) if certain else scaled).to(torch.int32)
        if self.aux > 1:
            cell *= self.aux
            if aux is not None:
                cell += aux
        if isinstance(first, Tensor) or first > 0:
            cell += first if isinstance(first, Tensor) else _number(first, torch.int32)
        return cell


@functools.lru_cache(maxsize=256)
def _number(value: int, dtype: torch.dtype) -> Tensor:
    """A Python number as a tensor; wrapping it at every call would cost as much as the operation it enters."""
    return torch.tensor(value, dtype=dtype)
