"""The largest of every row as one Triton kernel: exact, ties to the left, a budget for each row, nothing waits.

A program takes one row. It finds the key of the last position that is taken, bit by bit from the highest, by counting
how many candidates are at least as large; then candidates above it are taken, and of those level with it as many from
the left as there is room for. That is `choice._counted`, whose two top-k and eight launches it replaces.
"""

from __future__ import annotations

import torch
import triton.knobs  # Of Triton 3.4 and newer, which this is written for.
import triton.language as tl
from torch import Tensor

# Rows longer than this are left to torch: a row is held in the registers of one program.
LONGEST = 8192


@triton.jit
def _pick(
    rank, row_stride, candidates, budgets, budget, length, width,
    flags, positions, kept,
    PER_ROW: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The positions of one row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    inside = lane < length
    among = tl.load(candidates + row * length + lane, mask=inside, other=0) != 0
    # −0 becomes 0, as both are level. With the sign bit flipped, or all bits below 0, keys compare as unsigned numbers.
    x = tl.load(rank + row * row_stride + lane, mask=inside, other=0.0) + 0.0
    if BITS == 32:
        bits = x.to(tl.uint32, bitcast=True)
        one = tl.full((), 1, tl.uint32)
    else:
        bits = x.to(tl.uint64, bitcast=True)
        one = tl.full((), 1, tl.uint64)
    sign = one << (BITS - 1)
    key = tl.where((bits & sign) != 0, ~bits, bits | sign)
    count = budget
    if PER_ROW:
        count = tl.load(budgets + row).to(tl.int32)
    count = tl.minimum(tl.minimum(count, width), tl.sum(among.to(tl.int32), 0))
    edge = one ^ one
    for place in range(BITS):
        trial = edge | (sign >> place)
        enough = tl.sum((among & (key >= trial)).to(tl.int32), 0) >= count
        edge = tl.where(enough, trial, edge)
    above = among & (key > edge)
    level = among & (key == edge)
    room = count - tl.sum(above.to(tl.int32), 0)
    take = above | (level & (tl.cumsum(level.to(tl.int32), 0) <= room))
    slot = tl.cumsum(take.to(tl.int32), 0) - 1
    tl.store(flags + row * length + lane, take.to(tl.uint8), mask=inside)
    tl.store(positions + row * width + slot, lane.to(tl.int64), mask=take)
    tl.store(positions + row * width + lane, tl.zeros((BLOCK,), tl.int64), mask=(lane >= count) & (lane < width))
    tl.store(kept + row * width + lane, (lane < count).to(tl.uint8), mask=lane < width)


def pick(rank: Tensor, candidates: Tensor, count: int | Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """positions [B,K] int64 from left to right, kept [B,K] and flags [B,L] bool, of the `count` largest candidates.

    Args:
        rank: [B,L] float32 or float64. candidates: [B,L] bool. count: an int or [B]; width: K, at least every count.
    """
    rows, length = rank.shape
    if rank.stride(1) != 1:
        rank = rank.contiguous()
    device = rank.device
    flags = torch.empty(rows, length, dtype=torch.bool, device=device)
    positions = torch.empty(rows, width, dtype=torch.int64, device=device)
    kept = torch.empty(rows, width, dtype=torch.bool, device=device)
    each = isinstance(count, Tensor)
    block = max(16, triton.next_power_of_2(length))
    with torch.cuda.device_of(rank):
        _pick[(rows,)](
            rank, rank.stride(0), candidates.contiguous().view(torch.uint8),
            count.to(device, non_blocking=True) if each else positions, width if each else count, length, width,
            flags.view(torch.uint8), positions, kept.view(torch.uint8),
            PER_ROW=each, BITS=rank.element_size() * 8, BLOCK=block, num_warps=min(8, max(1, block // 128)),
        )  # fmt: skip
    return positions, kept, flags
