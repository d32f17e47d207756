"""One decision: what the order saw and knew, and which positions it chose.

Selection computes what it needs; the rest is worked out when it is asked for, from what was captured at that decision.
Shapes: B rows, L positions, K the largest budget.
"""

from __future__ import annotations

import copy
import importlib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dprm.order.cells import Cells
from dprm.order.checks import can_look
from dprm.order.lanes import log
from dprm.order.signals import Signal


@dataclass(frozen=True)
class Tilt:
    """The correction of every cell at one point of the schedule, ready to be looked up on one device.

    Attributes:
        value, gate: [cells] float32, R̂ and η.
        bonus: [cells] float32, η·guidance·β·R̂.
        factor: [cells] float32, e^bonus; None where that could overflow, and logarithms are used instead.
        silent: no cell has a correction; full: every cell has one.
        scale: guidance·β of a head, whose values are not looked up but seen; 0 where there is none.
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
        return _log_psi(value) + look_up(self.bonus, cell)


@dataclass(slots=True)
class Decision:
    """The inputs of one `select`, and the table it acted on.

    Attributes (B rows, L positions):
        confidence, host_value: [B,L] for the cells, and the host's ranking value.
        candidates: [B,L] bool. aux: [B,L] int or None.
        first: first cell of the phase, an int or [B,1].
        budget: int or [B]. most: its largest value, known without a sync.
        low, high: the lowest and the highest confidence; 0 and 1 where a look would cost a sync.
        seen: [B,L] float32, R̂ of a head; None where values come from the table.
        trust: [B,1] float32, the gate of a head, see `support`; None where cells have theirs.
        located: [B,L] int32, the cells of all positions, once somebody has asked for them.
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
    seen: Tensor | None = None
    trust: Tensor | None = None
    located: Tensor | None = None

    def support(self) -> Tensor:
        """[B,1] float32, the gate of a head: how much of this decision is like what the head was fitted on.

        A head says of two positions which is better, so one gate serves a whole decision: the mean over its candidates
        of the gates of their cells. Where no candidate is in a cell that was ever compared, it is 0.
        """
        flags = self.candidates.view(torch.uint8)
        lacking = torch.rsub(look_up(self.tilt.gate, self.all_cells()), 1.0).mul_(flags).sum(1, keepdim=True)
        return 1.0 - lacking / flags.sum(1, keepdim=True).clamp_(min=1)

    def gate_of(self, cell: Tensor) -> Tensor:
        """The gate η of some positions of every row, whose cells are `cell` [B,K]."""
        return look_up(self.tilt.gate, cell) if self.trust is None else self.trust.expand_as(cell)

    def bonus(self, cell: Tensor) -> Tensor:
        """[B,L] float32, η·guidance·β·R̂ of all positions; `cell` are their cells."""
        if self.seen is None or self.trust is None:
            return look_up(self.tilt.bonus, cell)
        return self.seen * (self.trust * self.tilt.scale)

    def rank(self, value: Tensor, cell: Tensor, index: Tensor | None = None) -> Tensor:
        """A number whose order is that of log ψ + bonus, of all positions or of those at index [B,K]; see `Tilt.rank`.

        Args:
            value, cell: the host's values and the cells of those positions.
        """
        if self.seen is None or self.trust is None:
            return self.tilt.rank(self.signal, value, cell)
        seen = self.seen if index is None else self.seen.gather(1, index)
        log_psi = _log_psi(value) if self.signal.linear else value
        return log_psi + seen * (self.trust * self.tilt.scale)

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
        """[B,L] int32 cells of all positions, worked out once."""
        if self.located is None:
            self.located = self.cells.index(self.first, self.confidence, self.aux, self.high >= 1.0)
        return self.located


def _log_psi(value: Tensor) -> Tensor:
    """log ψ in float64, which keeps any two float32 ψ apart."""
    psi = value.double().clamp_(min=1e-45)
    return log(psi, out=psi)


def look_up(column: Tensor, cell: Tensor) -> Tensor:
    """column[cell] for a cell tensor of any shape."""
    return column.index_select(0, cell.reshape(-1)).view(cell.shape)


class Choice:
    """The result of `Order.select`.

    Attributes (B rows, L positions, K the largest budget):
        mask: [B,L] bool, the selected positions.
        picked, kept: [B,K] the same as indices; picked[b,k] counts where kept[b,k].
        picked_cell: [B,K] int32, the cells of the picks, captured at selection: what will be credited.
        cell: [B,L] int64 cell of every position.
        log_psi, value, gate, score: [B,L] float32 log ψ, R̂, η and log ψ + η·guidance·β·R̂.
        changed: [B] bool, whether the selected set is not the one the host's own order would have taken.
    """

    def __init__(self, decision: Decision, picks: Picks, picked_cell: Tensor, by_host: bool = False):
        self._decision = decision
        self._by_host = by_host
        self._picks = picks
        self.picked = picks.position
        self.picked_cell = picked_cell

    @cached_property
    def mask(self) -> Tensor:
        return self._picks.mask(self._decision.candidates.shape[1])

    @property
    def candidates(self) -> Tensor:
        """[B,L] bool, the positions there were to choose from."""
        return self._decision.candidates

    @property
    def rows(self) -> int:
        """B."""
        return len(self.candidates)

    @property
    def budget(self) -> Tensor:
        """[B] int64, how many positions were asked for."""
        asked = self._decision.budget
        return asked if isinstance(asked, Tensor) else torch.full_like(self.mask[:, 0], asked, dtype=torch.int64)

    @cached_property
    def kept(self) -> Tensor:
        return self._picks.kept_flags()

    @cached_property
    def picked_gate(self) -> Tensor:
        """[B,K] float32, the gate η of the picks; 0 where none was kept."""
        return self._decision.gate_of(self.picked_cell) * self.kept

    @cached_property
    def picked_ready(self) -> Tensor:
        """[B,K] bool, the picks whose cell has all the evidence it needs."""
        return (look_up(self._decision.tilt.gate, self.picked_cell) >= 1.0) & self.kept

    @cached_property
    def _cell(self) -> Tensor:
        return self._decision.all_cells()

    @cached_property
    def cell(self) -> Tensor:
        return self._cell.long()

    @cached_property
    def log_psi(self) -> Tensor:
        return self._decision.signal.log_psi(self._decision.host_value)

    @cached_property
    def value(self) -> Tensor:
        seen = self._decision.seen
        return look_up(self._decision.tilt.value, self._cell) if seen is None else seen

    @cached_property
    def gate(self) -> Tensor:
        return self._decision.gate_of(self._cell)

    @cached_property
    def score(self) -> Tensor:
        return (self.log_psi + self._decision.bonus(self._cell)).float()

    @cached_property
    def host_mask(self) -> Tensor:
        """[B,L] bool, what the host's own order would have selected."""
        decision = self._decision
        return decision.host_picks().mask(decision.candidates.shape[1])

    @cached_property
    def changed(self) -> Tensor:
        if self._by_host:
            return torch.zeros(self.mask.shape[0], dtype=torch.bool, device=self.mask.device)
        return (self.mask != self.host_mask).any(1)

    def __or__(self, other: Choice) -> Choice:
        """Two selections at one moment from disjoint candidates, as one."""
        both = copy.copy(self)
        both.picked = torch.cat([self.picked, other.picked], dim=1)
        both.__dict__["kept"] = torch.cat([self.kept, other.kept], dim=1)
        both.picked_cell = torch.cat([self.picked_cell, other.picked_cell], dim=1)
        both.mask = self.mask | other.mask
        both.__dict__["picked_ready"] = torch.cat([self.picked_ready, other.picked_ready], dim=1)
        both.__dict__["picked_gate"] = torch.cat([self.picked_gate, other.picked_gate], dim=1)
        both.__dict__["host_mask"] = self.host_mask | other.host_mask
        both.__dict__["changed"] = self.changed | other.changed
        return both

    def events(self) -> tuple[Tensor, Tensor]:
        """The decisions to credit: row [n] and cell [n]."""
        row = self.kept.nonzero()[:, 0]
        return row, self.picked_cell[self.kept].long()


# ---- the largest of every row: exact, ties to the left, a budget for each row, no sync -------------------------------


class Picks(NamedTuple):
    """position[b,k] of row b is selected where kept[b,k]; kept is None where all are. Both [B,K].

    flags: the same as [B,L] bool, where finding the positions has given that too.
    """

    position: Tensor
    kept: Tensor | None
    flags: Tensor | None = None

    def kept_flags(self) -> Tensor:
        """[B,K] bool, also where all are kept."""
        return torch.ones_like(self.position, dtype=torch.bool) if self.kept is None else self.kept

    def mask(self, length: int) -> Tensor:
        """[B,L] bool. A position may stand again where it is not kept: a sum does not mind, a write would."""
        if self.flags is not None:
            return self.flags
        shape, device = (self.position.shape[0], length), self.position.device
        if self.kept is None:
            return torch.zeros(shape, dtype=torch.bool, device=device).scatter_(1, self.position, True)
        counts = torch.zeros(shape, dtype=torch.uint8, device=device)
        return counts.scatter_add_(1, self.position, self.kept.view(torch.uint8)).view(torch.bool)


# Non-candidates are pushed this far down: below every score, and x - 0 leaves a candidate's score as it was.
_PUSH = 1e30
_FLOOR = -1e29


def only(candidates: Tensor, rank: Tensor, positive: bool = False, out: Tensor | None = None) -> Tensor:
    """`rank` where candidates, elsewhere level and nowhere above them: masked_fill, several times faster on a CPU.

    (The detour over uint8 is part of that: bool converts to float three times more slowly.)

    Args:
        positive: no rank is below 0. Non-candidates are then 0, as candidates may be; otherwise far below everything.
        out: where to write, `rank` itself if nobody else needs it.
    """
    if positive:
        return torch.mul(rank, candidates.view(torch.uint8), out=out)
    return torch.sub(rank, (~candidates).view(torch.uint8), alpha=_PUSH, out=out)


def largest(rank: Tensor, candidates: Tensor, count: int | Tensor, most: int, descending: bool = False) -> Picks:
    """The `count` largest candidates of every row, ties to the left; `most` is the largest count, known without a sync.

    `rank` has gone through `only`. Where no tie crosses the edge of any row, all above the edge are the answer. To know
    that costs a look at the values; where there is a tie, and always on accelerators, where a look would cost a sync,
    the candidates at the edge are counted off from the left: by a kernel, or by torch where Triton is not installed.

    Args:
        descending: those of a row that are kept come from the largest down, where `kept` is given.
    """
    rows, length = rank.shape
    width = min(most, length)
    if width == 0 or rows == 0:
        return Picks(torch.zeros(rows, 0, dtype=torch.int64, device=rank.device), None)
    if (kernel := _kernel_for(rank)) is not None:
        position, kept, flags = kernel.pick(rank, candidates, count, width)
        if descending:
            top = rank.gather(1, position).masked_fill_(~kept, -torch.inf)
            position = position.gather(1, top.sort(dim=1, descending=True, stable=True).indices)
        return Picks(position, kept, flags)
    if isinstance(count, int):
        picks = clear_cut(rank, width)
        if picks is not None:
            return picks
        return _counted(rank, candidates, width, rank.topk(width, dim=1).values[:, -1:], width)
    column = count.unsqueeze(1)
    top, index = rank.topk(min(width + 1, length), dim=1)
    last = top.shape[1] - 1
    edge = top.gather(1, (column - 1).clamp_(0, last)).masked_fill_(column < 1, torch.inf)
    if width < length and can_look(rank) and bool((edge > top.gather(1, column.clamp(max=last))).all()):
        return Picks(index[:, :width], torch.arange(width) < column)
    return _counted(rank, candidates, column, edge, width)


def _kernel_for(rank: Tensor) -> Any:
    """The module with the kernel that picks from these, or None."""
    kernel = _kernel() if rank.is_cuda else None
    return kernel if kernel is not None and rank.shape[1] <= kernel.LONGEST else None


@cache
def _kernel() -> Any:
    """The module with the kernel, where triton 3.4 or newer is installed; nobody else imports it."""
    try:
        return importlib.import_module("dprm.order.triton_pick")
    except ImportError:
        return None


def clear_cut(rank: Tensor, width: int) -> Picks | None:
    """The `width` largest of every row, if no tie has to be broken and it takes no sync to know that; else None.

    The cut is clear where the last one taken is strictly above the first one left: also no non-candidate is then taken,
    for those are all level at the bottom. For few of many `torch.topk` keeps a heap. Otherwise it moves pairs of value
    and position about, one unpredictable branch after the other; to sort the bare values, in the parallel lanes of the
    processor, and to compare all with the first one left takes a quarter of the time.
    """
    rows, length = rank.shape
    if width >= length or not can_look(rank):
        return None
    if (width + 1) * 64 < length:
        top, index = rank.topk(width + 1, dim=1)
        clear = bool((top.select(1, width - 1) > top.select(1, width)).all())
        return Picks(index.narrow(1, 0, width), None) if clear else None
    values = rank.numpy()
    first_left = length - width - 1
    ascending = values.copy()
    ascending.sort(axis=1)
    above = values > ascending[:, first_left : first_left + 1]
    place = above.ravel().nonzero()[0]
    if len(place) < rows * width:
        return None
    return Picks(torch.from_numpy(place % length).view(rows, width), None, torch.from_numpy(above))


def _counted(rank: Tensor, candidates: Tensor, count: int | Tensor, edge: Tensor, width: int) -> Picks:
    """All above the edge [B,1], and of the candidates level with it as many from the left as there is room for."""
    above, level = rank > edge, (rank == edge) & candidates
    room = count - above.sum(1, keepdim=True)
    take = above | (level & (level.cumsum(1) <= room))
    top, index = torch.where(take, rank, -torch.inf).topk(width, dim=1)
    return Picks(index, top > _FLOOR)
