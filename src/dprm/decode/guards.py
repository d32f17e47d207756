"""Guards: what the host will not have revealed yet."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order.reading import Reading


@dataclass(frozen=True)
class HoldBack:
    """Hold end-of-text predictions back until nothing else of the window is left to reveal.

    A position whose predicted token is one of `tokens` is taken only when the budget cannot be met without it. It is
    the *prediction* that decides: lowering a logit after the arg-max has been taken holds nothing back.
    """

    tokens: tuple[int, ...]

    def held(self, reading: Reading, eligible: Tensor) -> Tensor:
        """[B,L] bool, the eligible positions that must wait."""
        banned = torch.zeros_like(eligible)
        for token in self.tokens:
            banned |= reading.tokens == token
        return eligible & banned

    def candidates(self, reading: Reading, eligible: Tensor) -> Tensor:
        """[B,L] bool, what may be revealed now: all that need not wait, or everything where nothing else is left.

        For loops of one's own: the obvious `eligible & ~held` never ends.
        """
        free = eligible & ~self.held(reading, eligible)
        return torch.where(free.any(1, keepdim=True), free, eligible)
