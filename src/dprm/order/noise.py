"""Randomness that belongs to a row: a counter-based hash instead of a generator with a state.

A draw is a function of (seed of the row, progress of the row, what it is for, position) and of nothing else. So a row
draws the same numbers alone, in a batch of 64, permuted or padded; nothing global is touched; no sync is needed.
All arithmetic wraps modulo 2³², which int32 tensors do on every device.
"""

from __future__ import annotations

import functools
import struct

import torch
from torch import Tensor

from dprm.order.checks import can_look

_GOLDEN = 0x9E3779B97F4A7C15
_LOW32 = 0xFFFFFFFF
_PROGRESS = -1640531527
# As tensors: a Python number would be wrapped into one at every call, which costs as much as the operation.
_FIFTEEN, _FIRST, _SECOND = torch.tensor([15, 2146121005, -2073254261], dtype=torch.int32)
_HALF = torch.tensor(0.5)
_STEP = 2.0**-32 * (1 - 2.0**-22)
# A vocabulary whose constants are kept, position by position: 8 MB in all.
_SMALL = 2**12

# What a draw is for: two uses of one seed must not see the same numbers.
SHORTLIST, RANDOM_ORDER, DRAW, ACCEPT, TOKEN, REVOKE, BRANCH = range(1, 8)


@functools.lru_cache(maxsize=1024)
def mix(*words: int) -> int:
    """A well-mixed 63-bit integer from any integers (the splitmix64 finaliser, folded over the words)."""
    state = 0
    for word in words:
        state = (state ^ word ^ word >> 64) + _GOLDEN & (2**64 - 1)
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
        state = (state ^ state >> 27) * 0x94D049BB133111EB & (2**64 - 1)
        state ^= state >> 31
    return state >> 1


def _signed32(word: int) -> int:
    word &= _LOW32
    return word - 2**32 if word >= 2**31 else word


def mix_rows(seeds: Tensor, *words: int | Tensor) -> Tensor:
    """`mix`, for a vector of seeds [B] int64: the seed of each row after absorbing words, the same or [B]."""
    state = seeds
    for word in words:
        state = (state ^ word) + (_GOLDEN - 2**64)
        state = (state ^ (state >> 30 & (2**34 - 1))) * (0xBF58476D1CE4E5B9 - 2**64)
        state = (state ^ (state >> 27 & (2**37 - 1))) * (0x94D049BB133111EB - 2**64)
        state = state ^ (state >> 31 & (2**33 - 1))
    return state


# Constants of more indices than this are worked out when they are needed: kept, they would fill the memory.
_KEPT = 2**20


def _hashed_indices(count: int, salt: int, device: torch.device) -> Tensor:
    """[count] int32: a random-looking constant for each index (row or position)."""
    return _kept_indices(count, salt, device) if count <= _KEPT else _hashed(count, salt, device)


def _hashed(count: int, salt: int, device: torch.device) -> Tensor:
    indices = torch.arange(count, dtype=torch.int64, device=device)
    return mix_rows(indices, salt).to(torch.int32)


_kept_indices = functools.lru_cache(maxsize=256)(_hashed)


@functools.lru_cache(maxsize=256)
def _hashed_rows(rows: int, device: torch.device) -> Tensor:
    """[B,1] int32: a random-looking constant for each row."""
    return _hashed_indices(rows, 2, device).unsqueeze(-1)


def row_seeds(seed: int | Tensor, rows: int, device: torch.device) -> Tensor:
    """[B] int64, one stream a row: given as they are, or derived from one seed and the row's number."""
    if isinstance(seed, Tensor):
        return seed.to(device, torch.int64, non_blocking=True)
    return mix_rows(torch.arange(rows, dtype=torch.int64, device=device), mix(seed))


class Stream:
    """The random numbers of a batch of rows at one decision."""

    def __init__(self, seed: int | Tensor, progress: float | Tensor, rows: int, device: torch.device):
        """Args: seed int or [B]; progress float or [B], so that one seed gives fresh numbers at every step."""
        self.progress = progress
        if isinstance(seed, Tensor):
            seeds = seed.to(device, torch.int64, non_blocking=True).unsqueeze(-1)
            self._keys, self._word = mix_rows(seeds, 1).to(torch.int32), 0
        else:
            self._keys, self._word = _hashed_rows(rows, device), seed
        # The same function of the float32 bits either way: a number and a vector of that number draw alike.
        self._salt = 0
        if isinstance(progress, Tensor):
            bits = progress.to(device, torch.float32, non_blocking=True).view(torch.int32).unsqueeze(-1) * _PROGRESS
            self._keys = self._keys ^ bits ^ (bits >> 15)
        else:
            word = _signed32(struct.unpack("<i", struct.pack("<f", progress))[0] * _PROGRESS)
            self._salt = word ^ word >> 15

    def log_uniform(self, count: int, use: int, turn: int = 0, version: Tensor | None = None) -> Tensor:
        """[B,count] float32: log u with u uniform on (0, 1); −log u is standard exponential and never 0.

        Args:
            use, turn: what the numbers are for; others give others.
            version: [B,count] int32; a number is drawn anew where its version is another.
        """
        keys = self.keys(use, turn)
        return _log_uniform(_hashed_indices(count, 3, keys.device), keys, version)

    def log_uniform_at(self, row: Tensor, block: Tensor, width: int, use: int, version: Tensor) -> Tensor:
        """[n,width] float32: of the numbers of row[k] those at block[k]·width and after, as `log_uniform` has them.

        Args:
            row, block: [n] int64; equal blocks stand side by side. version: [n] int32, see `log_uniform`.
        """
        return _log_uniform(_hashed_blocks(block, width), self.keys(use)[row], version.unsqueeze(1))

    def keys(self, use: int, turn: int = 0) -> Tensor:
        """[B,1] int32, what tells the draws of one row, for one use, from all others."""
        return self._keys ^ (_signed32(mix(self._word, use << 32 | turn)) ^ self._salt)


def _log_uniform(hashed: Tensor, keys: Tensor, version: Tensor | None) -> Tensor:
    """log u from the constants of places and the keys of rows."""
    x = hashed ^ keys
    if version is not None:
        x ^= version * _PROGRESS
    x *= _FIRST
    x ^= x >> _FIFTEEN
    # The key enters twice: position and row combined only once would leave the grid of both visible.
    x += keys
    x *= _SECOND
    # From [−2³¹, 2³¹) to [2⁻²³, 1 − 2⁻²³].
    return torch.add(_HALF, x, alpha=_STEP).log_()


def _hashed_blocks(block: Tensor, width: int) -> Tensor:
    """[n,width] int32, the constants of `_hashed_indices` at block[k]·width and after; equal blocks only once."""
    if not can_look(block):
        return mix_rows(block.unsqueeze(1) * width + torch.arange(width, device=block.device), 3).to(torch.int32)
    blocks, which = torch.unique_consecutive(block, return_inverse=True)
    hashed = torch.cat([_hashed_block(number, width) for number in blocks.tolist()])
    return hashed[which] if len(blocks) < len(block) else hashed


@functools.lru_cache(maxsize=512)
def _small_block(number: int, width: int) -> Tensor:
    return mix_rows(torch.arange(number * width, (number + 1) * width), 3).to(torch.int32).unsqueeze(0)


def _hashed_block(number: int, width: int) -> Tensor:
    """[1,width] int32 on the CPU; small ones are kept."""
    return _small_block(number, width) if width <= _SMALL else _small_block.__wrapped__(number, width)
