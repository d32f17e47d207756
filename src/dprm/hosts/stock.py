"""Training sequences from a stock that was generated once."""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.hosts.draws import Draws


class Stock:
    """An endless supply from a finite stock (see `masks.Data`).

    Args:
        tokens: [N,L] uint8, the clean sequences. answer: [L] bool, the positions to be predicted.
        seed: of the order in which they come.
    """

    def __init__(self, tokens: Tensor, answer: Tensor, mask_id: int, seed: int, device: torch.device | str):
        self.tokens, self.mask_id, self.seed, self.device = tokens, mask_id, seed, device
        self._answer = answer.to(device)

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        place = Draws("stock", self.seed, step, device=self.device).below(len(self.tokens), rows)
        return self.tokens[place].long(), self._answer.expand(rows, -1)
