"""Cells and their gate: the coarse state in which decisions share their evidence, and how far that is trusted.

    phase = min(P−1, ⌊P·progress⌋)    bin = min(B−1, ⌊B·confidence⌋)    cell = ((table·P + phase)·B + bin)·A + aux

    η_u(cell) = clip((u − T_warm)/(T_switch − T_warm), 0, 1) · min(N_cell/N_ready, 1)

With T_switch = T_warm the first factor is a step: 0 before T_warm, 1 from it on. Rows that share no evidence, such as
the questions of a search, have tables of their own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order.checks import check_count, check_number


@dataclass(frozen=True)
class Cells:
    """A grid of P phases × B confidence bins × A host-specific states, as often as there are tables."""

    phases: int = 8
    bins: int = 16
    aux: int = 1
    tables: int = 1

    def __post_init__(self) -> None:
        for name in ("phases", "bins", "aux", "tables"):
            check_count(name, getattr(self, name), 1)
        if self.count >= 2**31:
            raise ValueError(f"{self} has {self.count} cells: at most 2^31 - 1")

    @property
    def count(self) -> int:
        """Number of cells, of all tables."""
        return self.tables * self.each

    @property
    def each(self) -> int:
        """Number of cells of one table."""
        return self.phases * self.bins * self.aux

    @property
    def shape(self) -> tuple[int, int, int]:
        """(phases, bins, aux), the shape of a table seen as a grid."""
        return self.phases, self.bins, self.aux

    def first_of_phase(self, progress: float | Tensor, table: Tensor | None = None) -> int | Tensor:
        """The first cell of the phase: an int for a number, [B,1] int32 for a tensor of rows or tables [B]."""
        if table is not None:
            return self.first_of_phase(progress) + (table.int() * self.each).unsqueeze(-1)
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


@dataclass(frozen=True)
class Gate:
    """Warm-up, full switch and readiness thresholds (T_warm, T_switch, N_ready)."""

    warm: float = 0
    switch: float = 0
    ready: float = 64

    def __post_init__(self) -> None:
        check_number("warm", self.warm, 0)
        check_number("switch", self.switch, 0)
        check_number("ready", self.ready, 0, open_low=True)
        if self.switch < self.warm:
            raise ValueError(f"switch is {self.switch}: the full switch cannot come before warm = {self.warm}")

    def ramp(self, step: float) -> float:
        """The global factor at schedule index u."""
        if self.switch == self.warm:
            return float(step >= self.warm)
        return min(max((step - self.warm) / (self.switch - self.warm), 0.0), 1.0)

    def readiness(self, support: Tensor) -> Tensor:
        """The cell's factor, from the evidence it holds."""
        return (support / self.ready).clamp(max=1.0)


@functools.lru_cache(maxsize=256)
def _number(value: int, dtype: torch.dtype) -> Tensor:
    """A Python number as a tensor; wrapping it at every call would cost as much as the operation it enters."""
    return torch.tensor(value, dtype=dtype)
