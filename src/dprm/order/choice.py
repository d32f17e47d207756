"""A Choice: which positions were selected, and everything that can be asked about why.

Selection computes what it needs; the rest is worked out when it is asked for, from what was captured at that moment.
"""

from __future__ import annotations

import copy
from functools import cached_property

import torch
from torch import Tensor

from dprm.order.moment import Moment, look_up
from dprm.order.ranking import Picks


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

    def __init__(self, moment: Moment, picks: Picks, picked_cell: Tensor, by_host: bool = False):
        self._moment = moment
        self._by_host = by_host
        self._picks = picks
        self.picked = picks.position
        self.picked_cell = picked_cell

    @cached_property
    def mask(self) -> Tensor:
        return self._picks.mask(self._moment.candidates.shape[1])

    @property
    def candidates(self) -> Tensor:
        """[B,L] bool, the positions there were to choose from."""
        return self._moment.candidates

    @cached_property
    def kept(self) -> Tensor:
        return self._picks.kept_flags()

    @cached_property
    def picked_gate(self) -> Tensor:
        """[B,K] float32, the gate η of the picks; 0 where none was kept."""
        return look_up(self._moment.tilt.gate, self.picked_cell) * self.kept

    @cached_property
    def _cell(self) -> Tensor:
        return self._moment.all_cells()

    @cached_property
    def cell(self) -> Tensor:
        return self._cell.long()

    @cached_property
    def log_psi(self) -> Tensor:
        return self._moment.signal.log_psi(self._moment.host_value)

    @cached_property
    def value(self) -> Tensor:
        seen = self._moment.seen
        return look_up(self._moment.tilt.value, self._cell) if seen is None else seen

    @cached_property
    def gate(self) -> Tensor:
        return look_up(self._moment.tilt.gate, self._cell)

    @cached_property
    def score(self) -> Tensor:
        return (self.log_psi + self._moment.bonus(self._cell)).float()

    @cached_property
    def host_mask(self) -> Tensor:
        """[B,L] bool, what the host's own order would have selected."""
        moment = self._moment
        return moment.host_picks().mask(moment.candidates.shape[1])

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
        both.__dict__["host_mask"] = self.host_mask | other.host_mask
        both.__dict__["changed"] = self.changed | other.changed
        return both

    def events(self) -> tuple[Tensor, Tensor]:
        """The decisions to credit: row [n] and cell [n]."""
        row = self.kept.nonzero()[:, 0]
        return row, self.picked_cell[self.kept].long()
