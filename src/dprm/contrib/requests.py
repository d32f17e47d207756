"""The state of B requests of an engine: what they are called, and where in their text they are."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order.noise import mix_rows


@dataclass(frozen=True)
class Requests:
    """B requests, each inside one block.

    Attributes:
        names: what the engine calls each request; it finds the traces again, and seeds what is drawn.
        first: [B] int64, the place of the block in the text. initial: [B] int64, masked positions at its start.
        turn: [B] int64, blocks of this name before this one, where the place does not tell them apart; None: it does.
    """

    names: tuple[str, ...]
    first: Tensor
    initial: Tensor
    turn: Tensor | None = None

    @classmethod
    def begin(cls, names: Sequence[str], masked: Tensor, first: int | Tensor = 0) -> Requests:
        """Requests at the start of a block, masked [B,L] bool saying where."""
        if len(names) != len(masked):
            raise ValueError(f"names has {len(names)} requests: expected {len(masked)}, one a row of masked")
        initial = masked.sum(1)
        return cls(tuple(names), torch.zeros_like(initial) + first, initial)

    def __getitem__(self, row: int) -> Requests:
        """One request, as a batch of one."""
        return Requests((self.names[row],), self.first[row : row + 1], self.initial[row : row + 1])

    @classmethod
    def joined(cls, parts: Sequence[Requests]) -> Requests:
        """Several, one after the other."""
        names = tuple(name for part in parts for name in part.names)
        return cls(names, torch.cat([part.first for part in parts]), torch.cat([part.initial for part in parts]))

    def seeds(self) -> Tensor:
        """[B] int64, from names and blocks: the same on every rank, in every batch, after every restart."""
        seeds = torch.tensor([_seed(name) for name in self.names])
        words = (self.first,) if self.turn is None else (self.first, self.turn)
        return mix_rows(seeds.to(self.first.device, non_blocking=True), *words)

    def progress(self, candidates: Tensor) -> Tensor:
        """[B] float32, the share of the block that is revealed."""
        return (1.0 - candidates.sum(1) / self.initial.clamp(min=1)).clamp(0.0, 1.0)


@functools.lru_cache(maxsize=65_536)
def _seed(name: str) -> int:
    """63 bits of a request's name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") >> 1
