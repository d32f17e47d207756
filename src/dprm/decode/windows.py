"""Windows: which masked positions are eligible now.

A window that also has `ended`, (state, masked [B,L]) → [B] bool, says of which rows nothing more is revealed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dprm.decode.state import State
from dprm.order.checks import check_count


class Window(Protocol):
    """Restricts the eligible positions of a row."""

    def __call__(self, state: State, eligible: Tensor) -> tuple[Tensor, Tensor]:
        """(eligible [B,L], number of the window each row is in [B]); a new number starts the count of steps anew."""


@dataclass(frozen=True)
class Blocks:
    """Semi-autoregressive decoding: one block of `length` positions after the other, from the first that was masked."""

    length: int

    def __post_init__(self) -> None:
        check_count("length", self.length, 1)

    def __call__(self, state: State, eligible: Tensor) -> tuple[Tensor, Tensor]:
        width = eligible.shape[1]
        position = torch.arange(width, device=eligible.device)
        start = torch.where(state.given, width, position).amin(1, keepdim=True)
        block = (position - start).clamp(min=0) // self.length
        current = torch.where(eligible, block, width).amin(1, keepdim=True)
        return eligible & (block == current), current.squeeze(1)
