"""The value of a head as one Triton kernel: `fold.Fold` for an accelerator, where each of its operations is a launch.

A program takes one row. The order statistics that turns and the host's choice begin at, ten of a row, are found
together, bit by bit from the highest, by counting. What stands beside a position is read again and worked out again,
shift by shift: a row stays in the caches. Shapes: B rows, L positions, A aux states, S = 2r + 1 shifts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton.knobs  # Of Triton 3.4 and newer, which this is written for.
import triton.language as tl
from torch import Tensor

from dprm.order.features import LEVELS, TURNS

if TYPE_CHECKING:
    from dprm.order.fold import Fold
    from dprm.order.head import Sight

# Rows longer than this are left to torch: a row is held in the registers of one program.
LONGEST = 2048
# Order statistics of a row, those of the turns first, padded to a power of two.
_STATISTICS = tl.constexpr(16)
_TURNS = tl.constexpr(len(TURNS))
_LEVELS = tl.constexpr(len(LEVELS))


@triton.jit
def _columns(confidence, margin, entropy, candidates, at, inside, best, edge):
    """The seven own numbers of the positions at `at` [L] of a row; 0 outside of the canvas."""
    open_ = tl.load(candidates + at, mask=inside, other=0) != 0
    shown = tl.where(open_, tl.load(confidence + at, mask=inside, other=0.0), 1.0)
    margin_ = tl.where(open_, tl.load(margin + at, mask=inside, other=0.0), 1.0)
    entropy_ = tl.minimum(tl.where(open_, tl.load(entropy + at, mask=inside, other=0.0), 0.0), 4.0)
    sureness = tl.log(tl.maximum(1.0 - shown, 1e-4)) * -0.2
    ratio = tl.minimum(tl.maximum(tl.log(tl.maximum(shown, 1e-6)) - best, -5.0), 0.0)
    hidden = tl.where(open_, 1.0, 0.0)
    choice = tl.where(open_ & (shown >= edge), 1.0, 0.0)
    return shown, sureness, margin_, entropy_, ratio, hidden, choice


@triton.jit
def _values(
    confidence, margin, entropy, candidates, aux, progress, budgets, values, length,
    shift, of_row, state, told, bounds, levels, pace, left_once, left_twice,
    REACH: tl.constexpr, BOUNDS: tl.constexpr, STATES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """R̂ of the positions of one row."""
    row = tl.program_id(0).to(tl.int64)
    start = row * length
    lane = tl.arange(0, BLOCK)
    inside = lane < length
    open_ = tl.load(candidates + start + lane, mask=inside, other=0) != 0
    read = tl.load(confidence + start + lane, mask=inside, other=0.0)
    psi = tl.where(open_, read, 0.0)
    shown = tl.where(open_, read, 1.0)
    many = tl.sum(open_.to(tl.int32), 0)
    among = tl.maximum(many, 1).to(tl.float32)
    budget = tl.load(budgets + row).to(tl.int32)
    steps = tl.maximum((many + tl.maximum(budget, 1) - 1) // tl.maximum(budget, 1), 1)

    # The ranks, from the largest down, at which the turns begin; then the last that the host takes, and the first.
    slot = tl.arange(0, _STATISTICS)
    turn = slot < _TURNS
    level = tl.load(levels + slot, mask=turn, other=0.0)
    below = (shown[None, :] < level[:, None]) & inside[None, :]
    unsure = tl.sum(below.to(tl.int32), 1)
    span = steps * tl.load(pace + slot, mask=turn, other=1).to(tl.int32)
    rank = many - unsure + (unsure + span - 1) // span
    rank = tl.where(turn, rank, tl.where(slot == _TURNS, budget, 1))
    rank = tl.minimum(tl.maximum(rank, 1), length)
    # No confidence is below 0 or above 1: as integers they are in the same order, and 30 bits tell them apart.
    key = psi.to(tl.int32, bitcast=True)
    found = tl.zeros((_STATISTICS,), tl.int32)
    for place in range(30):
        trial = found | (1 << (29 - place))
        reached = (key[None, :] >= trial[:, None]) & inside[None, :]
        found = tl.where(tl.sum(reached.to(tl.int32), 1) >= rank, trial, found)
    statistic = found.to(tl.float32, bitcast=True)
    edge = tl.sum(tl.where(slot == _TURNS, statistic, 0.0), 0)
    # Below the floor of the logarithm all are level.
    edge = tl.where(edge > 1e-6, edge, 0.0)
    best = tl.log(tl.maximum(tl.sum(tl.where(slot == _TURNS + 1, statistic, 0.0), 0), 1e-6))

    own = _columns(confidence, margin, entropy, candidates, start + lane, inside, best, edge)
    done = tl.load(progress + row)
    mean = tl.sum(psi, 0) / among
    mean_entropy = tl.sum(tl.where(inside, own[3], 0.0), 0) / among
    wide: tl.constexpr = 5 + BOUNDS + _TURNS + 1
    column = tl.arange(0, 32)
    some = column < wide
    weight = tl.load(of_row + column, mask=some, other=0.0)
    weight += done * tl.load(of_row + wide + column, mask=some, other=0.0)
    weight += mean * tl.load(of_row + 2 * wide + column, mask=some, other=0.0)
    weight += mean_entropy * tl.load(of_row + 3 * wide + column, mask=some, other=0.0)

    value = tl.zeros((BLOCK,), tl.float32)
    for side in range(2 * REACH + 1):
        at = lane + side - REACH
        here = (at >= 0) & (at < length)
        beside = _columns(confidence, margin, entropy, candidates, start + at, here, best, edge)
        sum_ = tl.zeros((BLOCK,), tl.float32) + tl.load(shift + side * 8 + 7)
        for number in tl.static_range(7):
            sum_ += tl.load(shift + side * 8 + number) * beside[number]
        if STATES:
            its = tl.load(aux + start + at, mask=here, other=0)
            sum_ += tl.load(state + its * (2 * REACH + 1) + side, mask=here, other=0.0)
        value += tl.where(here, sum_, 0.0)
    for number in tl.static_range(5):
        value += own[number] * tl.sum(tl.where(column == number, weight, 0.0), 0)
    for bound in range(BOUNDS):
        step = tl.sum(tl.where(column == 5 + bound, weight, 0.0), 0)
        value += tl.where(shown >= tl.load(bounds + bound), step, 0.0)
    for which in range(_TURNS):
        step = tl.sum(tl.where(column == 5 + BOUNDS + which, weight, 0.0), 0)
        begins = tl.minimum(tl.sum(tl.where(slot == which, statistic, 0.0), 0), tl.load(levels + which))
        value += tl.where(shown >= begins, step, 0.0)
    left = tl.cumsum(open_.to(tl.int32), 0).to(tl.float32) / among
    value += (left * left_twice + left_once) * left + tl.sum(tl.where(column == wide - 1, weight, 0.0), 0)
    if STATES:
        mine = told + tl.load(aux + start + lane, mask=inside, other=0) * 7
        value += tl.load(mine, mask=inside, other=0.0) * own[0] + tl.load(mine + 1, mask=inside, other=0.0) * own[1]
        value += tl.load(mine + 2, mask=inside, other=0.0) * own[3] + tl.load(mine + 3, mask=inside, other=0.0) * own[4]
        value += tl.load(mine + 4, mask=inside, other=0.0) * done + tl.load(mine + 5, mask=inside, other=0.0) * mean
        value += tl.load(mine + 6, mask=inside, other=0.0) * mean_entropy
    tl.store(values + start + lane, value, mask=inside)


def values(fold: Fold, sight: Sight) -> Tensor:
    """R̂ of every position, [B,L] float32."""
    rows, length = sight.candidates.shape
    result = torch.empty(rows, length, device=sight.candidates.device)
    if not rows or not length:
        return result
    by_state = fold.state is not None
    block = max(16, triton.next_power_of_2(length))
    with torch.cuda.device_of(result):
        _values[(rows,)](
            sight.confidence.contiguous(), sight.margin.contiguous(), sight.entropy.contiguous(),
            sight.candidates.contiguous().view(torch.uint8), sight.aux.contiguous() if by_state else result,
            sight.progress.contiguous(), sight.budget.contiguous(), result, length,
            fold.shift, fold.row, fold.state if by_state else result, fold.told if by_state else result,
            fold.bounds, fold.levels, fold.pace, *fold.left,
            REACH=len(fold.shift) // 2, BOUNDS=fold.bounds.shape[1], STATES=by_state, BLOCK=block,
            num_warps=min(8, max(1, block // 64)),
        )  # fmt: skip
    return result
