"""Random numbers that are a pure function of the words that name them.

A generator with a state has to be saved, and gives other numbers on another device. Here the k-th array drawn from
`Draws("masks", seed, step)` is a hash of these words, of k and of the index: a training that is resumed at step 10,000
sees the same data as one that was never stopped, and a seed gives the same problems on a laptop and on an accelerator.
"""

from __future__ import annotations

import zlib

import torch
from torch import Tensor

from dprm.order.noise import mix, mix_rows


class Draws:
    """A sequence of arrays of random numbers.

    Args:
        words: what names the sequence: its purpose, a seed, a step.
        device: where the arrays live; their values do not depend on it.
    """

    def __init__(self, *words: str | int, device: torch.device | str = "cpu"):
        self._name = mix(*(zlib.crc32(word.encode()) if isinstance(word, str) else word for word in words))
        self._turn = 0
        self._device = device

    def bits(self, *shape: int) -> Tensor:
        """Integers, uniform on [0, 2⁶²)."""
        self._turn += 1
        index = torch.arange(int(torch.Size(shape).numel()), dtype=torch.int64, device=self._device)
        return (mix_rows(index, mix(self._name, self._turn)) & (2**62 - 1)).view(shape)

    def below(self, bound: int | Tensor, *shape: int) -> Tensor:
        """Integers, uniform on [0, bound); a tensor of bounds broadcasts against the shape."""
        return self.bits(*shape) % bound

    def uniform(self, *shape: int) -> Tensor:
        """float32, uniform on [0, 1)."""
        return (self.bits(*shape) >> 38).float() * 2.0**-24

    def permutations(self, *shape: int) -> Tensor:
        """Uniform permutations of 0 … n−1 along the last dimension."""
        return self.bits(*shape).argsort(-1)


def row_hash(columns: Tensor) -> Tensor:
    """[N] int64 ≥ 0: a well-mixed hash of every row of an integer array [N, k], the same on every device."""
    state = torch.zeros(len(columns), dtype=torch.int64, device=columns.device)
    for column in columns.unbind(1):
        state = mix_rows(state ^ column.long(), columns.shape[1])
    return state & (2**62 - 1)
