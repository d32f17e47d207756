"""The moment of a decision: what the order module saw and what it knew, captured."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dprm.order.cells import Cells
from dprm.order.ranking import Picks, largest, only
from dprm.order.signals import Signal


@dataclass(frozen=True)
class Tilt:
    """The correction of every cell at one point of the schedule, ready to be looked up on one device.

    Attributes:
        value, gate: [cells] float32, R̂ and η.
        bonus: [cells] float32, η·guidance·β·R̂.
        factor: [cells] float32, e^bonus; None where that could overflow, and logarithms are used instead.
        silent: no cell has a correction; full: every cell has one.
        scale: η·guidance·β of a head, whose values are not looked up but seen; 0 where there is none.
    """

    value: Tensor
    gate: Tensor
    bonus: Tensor
    factor: Tensor | None
    silent: bool
    full: bool
    scale: float = 0.0

    def rank(self, signal: Signal, value: Tensor, cell: Tensor) -> Tensor:
        """A number whose order is that of log ψ + bonus, and the host's own, bit for bit, where the bonus is 0.

        ψ·e^bonus and log ψ + bonus need no logarithm a position. Where e^bonus could overflow, log ψ is taken in
        float64, which keeps any two float32 ψ apart.
        """
        if self.silent:
            return value
        if not signal.linear:
            return value + look_up(self.bonus, cell)
        if self.factor is not None:
            factor = look_up(self.factor, cell)
            # Into the temporary, if it has the type of the product.
            return factor.mul_(value) if value.dtype == factor.dtype else value * factor
        return value.double().clamp(min=1e-45).log() + look_up(self.bonus, cell)


@dataclass(slots=True)
class Moment:
    """The inputs of one `select`, and the table it acted on.

    Attributes (B rows, L positions):
        confidence, host_value: [B,L] for the cells, and the host's ranking value.
        candidates: [B,L] bool. aux: [B,L] int or None.
        first: first cell of the phase, an int or [B,1].
        budget: int or [B]. most: its largest value, known without a sync.
        low, high: the lowest and the highest confidence; 0 and 1 where a look would cost a sync.
        tilted: shortlists are drawn from the tilted law instead of the host's.
        seen: [B,L] float32, R̂ of a head; None where values come from the table.
    """

    cells: Cells
    signal: Signal
    tilt: Tilt
    confidence: Tensor
    host_value: Tensor
    candidates: Tensor
    aux: Tensor | None
    first: int | Tensor
    budget: int | Tensor
    most: int
    low: float
    high: float
    tilted: bool = False
    seen: Tensor | None = None

    def bonus(self, cell: Tensor) -> Tensor:
        """[B,L] float32, η·guidance·β·R̂ of all positions; `cell` are their cells."""
        return look_up(self.tilt.bonus, cell) if self.seen is None else self.seen * self.tilt.scale

    def rank(self, value: Tensor, cell: Tensor, index: Tensor | None = None) -> Tensor:
        """A number whose order is that of log ψ + bonus, of all positions or of those at index [B,K]; see `Tilt.rank`.

        Args:
            value, cell: the host's values and the cells of those positions.
        """
        if self.seen is None:
            return self.tilt.rank(self.signal, value, cell)
        seen = self.seen if index is None else self.seen.gather(1, index)
        log_psi = value.double().clamp(min=1e-45).log() if self.signal.linear else value
        return log_psi + seen * self.tilt.scale

    @property
    def positive(self) -> bool:
        """Whether the host's value is known to be nowhere below 0: a confidence has been checked, others have not."""
        return self.host_value is self.confidence

    def host_picks(self) -> Picks:
        """What the host's own order would take."""
        return largest(only(self.candidates, self.host_value, self.positive), self.candidates, self.budget, self.most)

    def cell_at(self, index: Tensor) -> Tensor:
        """[B,K] int32 cells of some positions index [B,K]."""
        return self.cell_and_value_at(index)[0]

    def cell_and_value_at(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """[B,K] int32 cells and the host's values of some positions index [B,K]."""
        confidence = self.confidence.gather(1, index)
        aux = None if self.aux is None else self.aux.gather(1, index)
        value = confidence if self.host_value is self.confidence else self.host_value.gather(1, index)
        return self.cells.index(self.first, confidence, aux, self.high >= 1.0), value

    def all_cells(self) -> Tensor:
        """[B,L] int32 cells of all positions."""
        return self.cells.index(self.first, self.confidence, self.aux, self.high >= 1.0)


def look_up(column: Tensor, cell: Tensor) -> Tensor:
    """column[cell] for a cell tensor of any shape."""
    return column.index_select(0, cell.reshape(-1)).view(cell.shape)
