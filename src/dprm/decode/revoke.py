"""Revoking: hosts in which a revealed token may return to the mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from dprm.decode.state import State
from dprm.order.checks import check_number
from dprm.order.noise import REVOKE, Stream, mix_rows


class Revoke(Protocol):
    """Says which positions take part in a step besides the masked ones, and which are masked again after it."""

    def competing(self, state: State, masked: Tensor) -> Tensor:
        """[B,L] bool, the positions among which this step chooses."""

    def withdrawn(self, state: State, competing: Tensor, chosen: Tensor, progress: Tensor) -> Tensor:
        """[B,L] bool, the positions that return to the mask after this step; progress [B] counts the step."""


@dataclass(frozen=True)
class Compete:
    """Every position that was not given competes at every step; those not chosen are masked (DPLM, MaskGIT's kin).

    Goes with the count rule `Cumulative`, which lets the number of visible positions grow.
    """

    def competing(self, state: State, masked: Tensor) -> Tensor:
        return ~state.given

    def withdrawn(self, state: State, competing: Tensor, chosen: Tensor, progress: Tensor) -> Tensor:
        return competing & ~chosen


@dataclass(frozen=True)
class Remask:
    """Each revealed position returns to the mask with probability rate · (1 − progress) (ReMDM)."""

    rate: float = 0.05

    def __post_init__(self) -> None:
        check_number("rate", self.rate, 0, 1)

    def competing(self, state: State, masked: Tensor) -> Tensor:
        return masked

    def withdrawn(self, state: State, competing: Tensor, chosen: Tensor, progress: Tensor) -> Tensor:
        rows, length = chosen.shape
        stream = Stream(mix_rows(state.seeds, state.step), progress, rows, chosen.device)
        uniform = stream.log_uniform(length, REVOKE).exp_()
        revealed = (state.step_map > 0) & ~chosen
        return revealed & (uniform < (self.rate * (1.0 - progress)).unsqueeze(1))
