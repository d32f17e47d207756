"""The value of a head without its features: w · φ worked out from what φ is made of.

    neighbours   Σ_s w_s · x_{i+s}: one small matrix product for all shifts, then a sum along its diagonals
    by state     a look-up of the weights; with a single state, a part of the above
    slopes       row by row an addition to the weights of the position itself
    steps, turns a sum over thresholds, Σ_k c_k · [confidence ≥ b_k]: a turn is a step up at its edge and one down at
                 its level, so that the few c and b of a row say it all
    place        a polynomial

`features.basis` is the definition, [B,L,F] numbers for a fit; nothing of that size is made here. Shapes: B rows,
L positions, A aux states, S = 2r + 1 shifts.
"""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dprm.order.checks import can_look
from dprm.order.features import LEVELS, OWN, STEPS, TURNS
from dprm.order.lanes import log, rising

if TYPE_CHECKING:
    from dprm.order.head import Sight

_SLOPED, _WHOLE, _COLUMNS = 5, 3, OWN + 1
# Thresholds that are the same in every row: those of the steps, and last the levels, where turns end.
_BOUNDS = [*(step for step in STEPS if step not in LEVELS), *LEVELS]
# Columns of a matrix product, and positions worked on at a time.
_TILE, _AT_ONCE = 4096, 16384
# Memory of this thread for batches of a few shapes, some megabytes each.
_MEMORY, _KEPT = threading.local(), 4
# Which columns the weights by state are of: confidence, sureness, entropy, log ratio.
_TOLD = [0, 1, 3, 4]


class _Columns:
    """Numbers of every position and of its surroundings, in memory that all parts of a batch share.

    Attributes:
        inner: 8 views [B,L] to write to; outside of the canvas all are 0.
        above: [B,18,L] to write to, what is said of every threshold.
    """

    def __init__(self, rows: int, length: int, reach: int, device: torch.device):
        self.shape, self.reach = (rows, length), reach
        wide = length + 2 * reach
        self.used = rows * wide
        width = -(-self.used // _TILE) * _TILE
        self.block = torch.empty(_COLUMNS, width, device=device)
        self.products = torch.empty(2 * reach + 1, width, device=device)
        self.above = torch.empty(rows, len(_BOUNDS) + len(TURNS), length, device=device)
        self.block[:, self.used :] = 0.0
        grid = self.block[:, : self.used].view(_COLUMNS, rows, wide)
        grid[:, :, :reach] = 0.0
        grid[:, :, wide - reach :] = 0.0
        self.inner = grid[:, :, reach : wide - reach].unbind(0)

    def neighbours(self, weight: Tensor, state: Tensor | None) -> Tensor:
        """[B,L], Σ_s Σ_k weight[s,k] · x_k[b, l + s − r]; state [B,L,S] is added shift by shift.

        The product is made tile by tile, all of one shape: a matrix product may add in another order when its shape is
        another, and then a row would depend on its batch.
        """
        (rows, length), wide = self.shape, self.shape[1] + 2 * self.reach
        products = self.products
        for first in range(0, self.block.shape[1], _TILE):
            tile = slice(first, first + _TILE)
            torch.mm(weight, self.block[:, tile], out=products[:, tile])
        if state is not None:
            grid = products[:, : self.used].view(-1, rows, wide)
            grid[:, :, self.reach : wide - self.reach] += state.permute(2, 0, 1)
        return products.as_strided((len(weight), rows, length), (products.shape[1] + 1, wide, 1)).sum(0)


@dataclass(frozen=True)
class Fold:
    """The weights of a head, sorted by what they meet.

    Attributes:
        shift: [S,8] of the seven own numbers and of being on the canvas, at every shift.
        row: [4,5 + 18 + 1] from (1, progress, mean confidence, mean entropy) of a row to what is added to the weights
            of the position itself, to the steps at its thresholds, and what all its positions have in common.
        state: [A,S] and told: [A,7], the weights by state; None with a single state.
        bounds: [1,10], the thresholds of all rows. levels: [1,8], the level of every turn.
        pace: [1,8] int64, 1 for a turn and 2 for a first, which has half as many members.
        left: the weights of the share of candidates to the left, and of its square.
    """

    shift: Tensor
    row: Tensor
    state: Tensor | None
    told: Tensor | None
    bounds: Tensor
    levels: Tensor
    pace: Tensor
    left: tuple[float, float]

    @classmethod
    def of(cls, weight: Tensor, aux: int, reach: int) -> Fold:
        """Args: weight [F] in the order of `features.names`."""
        shifts, device = 2 * reach + 1, weight.device
        sizes = [OWN * shifts, aux * shifts, aux * 7, _SLOPED * _WHOLE, len(STEPS), len(TURNS), len(TURNS) * _WHOLE, 2]
        own, state, told, slopes, steps, turns, turning, left = weight.float().split_with_sizes(sizes)
        shift = torch.zeros(shifts, _COLUMNS, device=device)
        shift[:, :OWN] = own.view(OWN, shifts).T
        row = torch.zeros(1 + _WHOLE, _SLOPED + len(_BOUNDS) + len(TURNS) + 1, device=device)
        here, at_bounds, at_edges, common = row.split_with_sizes([_SLOPED, len(_BOUNDS), len(TURNS), 1], dim=1)
        here[1:] = slopes.view(_SLOPED, _WHOLE).T
        at_bounds[0, [_BOUNDS.index(step) for step in STEPS]] = steps
        at_edges[0], at_edges[1:] = turns, turning.view(len(TURNS), _WHOLE).T
        at_bounds[:, -len(LEVELS) :] -= at_edges.view(1 + _WHOLE, len(LEVELS), 2).sum(2)
        if aux == 1:
            shift[:, OWN] = state
            shift[reach, _TOLD] += told[:4]
            common[1:, 0] = told[4:]
        by_state = aux > 1
        levels = torch.tensor(LEVELS, device=device).repeat_interleave(2).unsqueeze(0)
        return cls(
            shift=shift,
            row=row,
            state=state.view(aux, shifts).contiguous() if by_state else None,
            told=told.view(aux, 7).contiguous() if by_state else None,
            bounds=torch.tensor(_BOUNDS, device=device).unsqueeze(0),
            levels=levels,
            pace=torch.tensor([1, 2] * len(LEVELS), device=device).unsqueeze(0),
            left=(float(left[0]), float(left[1])),
        )

    def __call__(self, sight: Sight) -> Tensor:
        """R̂ of every position, [B,L] float32."""
        if (kernel := _kernel_for(sight.candidates)) is not None:
            return kernel.values(self, sight)  # type: ignore[no-any-return]
        # A hundred small operations: what autograd asks of each would be a part of their price.
        with torch.inference_mode():
            value = self._values(sight)
        return value.clone()

    def _values(self, sight: Sight) -> Tensor:
        rows, length = sight.candidates.shape
        # As many rows at a time as stay in the caches of a processor; a row's value does not depend on the others.
        count = max(1, _AT_ONCE // max(length, 1)) if can_look(sight.candidates) else rows
        if rows <= count:
            return self._value(sight, self._columns(sight))
        columns = self._columns(sight[:count])
        values = [self._value(sight[first : first + count], columns) for first in range(0, rows - count + 1, count)]
        rest = sight[rows - rows % count :]
        return torch.cat([*values, self._value(rest, self._columns(rest))] if rows % count else values)

    def _columns(self, sight: Sight) -> _Columns:
        """Memory for a part of a batch. On a CPU it is kept: to be given new pages would take longer than all else."""
        rows, length = sight.candidates.shape
        key = (rows, length, len(self.shift) // 2, sight.candidates.device)
        if not can_look(sight.candidates):
            return _Columns(*key)
        kept: dict[Any, _Columns] = _MEMORY.__dict__
        if key not in kept:
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = _Columns(*key)
        return kept[key]

    def _value(self, sight: Sight, columns: _Columns) -> Tensor:
        candidates, budget = sight.candidates, sight.budget.unsqueeze(1)
        length = candidates.shape[1]
        open_ = candidates.view(torch.uint8).float()
        closed = 1.0 - open_
        # As bits: 0 where no candidate is, whatever was read there.
        keep = candidates.view(torch.uint8).int().neg_()
        psi = _only(sight.confidence, keep)
        ordered = rising(psi)
        many = open_.sum(1, keepdim=True)
        among = many.clamp(min=1.0)
        shown = psi + closed

        confidence, sureness, margin, entropy, ratio, hidden, choice, canvas = columns.inner
        confidence.copy_(shown)
        log((1.0 - shown).clamp_(min=1e-4), sureness).mul_(-0.2)
        torch.add(_only(sight.margin, keep), closed, out=margin)
        torch.clamp(_only(sight.entropy, keep), max=4.0, out=entropy)
        log(shown.clamp(min=1e-6), ratio).sub_(ordered[:, -1:].clamp(min=1e-6).log()).clamp_(-5.0, 0.0)
        hidden.copy_(open_)
        edge = ordered.gather(1, (length - budget).clamp_(0, length - 1))
        # Below the floor of the logarithm all are level.
        torch.ge(psi, edge * (edge > 1e-6), out=choice).mul_(open_)
        canvas.fill_(1.0)

        means = psi.sum(1, keepdim=True) / among, entropy.sum(1, keepdim=True) / among
        whole = torch.cat([torch.ones_like(among), sight.progress.unsqueeze(1), *means], dim=1)
        # Of this and of all other sums, the order of the terms does not depend on the number of rows.
        of_row = (whole.unsqueeze(2) * self.row).sum(1)
        sloped, steps, common = of_row.split_with_sizes([_SLOPED, of_row.shape[1] - _SLOPED - 1, 1], dim=1)

        value = columns.neighbours(self.shift, None if self.state is None else self.state[sight.aux])
        for column, weight in zip(columns.inner, sloped.unbind(1)):
            value.addcmul_(column, weight.unsqueeze(1))
        value += self._steps(columns.above, shown, ordered, many, budget, steps)
        left = open_.cumsum(1).div_(among)
        value += (left * self.left[1]).add_(self.left[0]).mul_(left).add_(common)
        if self.told is not None:
            told = self.told[sight.aux].unbind(2)
            for weights, number in zip(told, (confidence, sureness, entropy, ratio, *whole[:, 1:, None].unbind(1))):
                value += weights * number
        return value

    def _steps(
        self, above: Tensor, shown: Tensor, ordered: Tensor, many: Tensor, budget: Tensor, weight: Tensor
    ) -> Tensor:
        """[B,L], the sum over all thresholds that the confidence reaches; weight [B,18] of the thresholds.

        A turn begins at its edge: see `features.paced`.
        """
        length, fixed = shown.shape[1], self.bounds.shape[1]
        torch.ge(shown.unsqueeze(1), self.bounds.unsqueeze(2), out=above[:, :fixed])
        number = many.long()
        # What is visible is above all levels.
        unsure = length - above[:, fixed - len(LEVELS) : fixed].sum(2).long()
        steps = (-(-number // budget.clamp(min=1))).clamp(min=1)
        unsure = unsure.repeat_interleave(2, 1)
        rank = number - unsure - (-unsure // (steps * self.pace))
        # Without a member it begins where it ends.
        edge = torch.minimum(ordered.gather(1, (length - rank).clamp_(0, length - 1)), self.levels)
        torch.ge(shown.unsqueeze(1), edge.unsqueeze(2), out=above[:, fixed:])
        return above.mul_(weight.unsqueeze(2)).sum(1)


def _kernel_for(candidates: Tensor) -> Any:
    """The module with the kernel for rows like these, or None."""
    kernel = _kernel() if candidates.is_cuda else None
    return kernel if kernel is not None and candidates.shape[1] <= kernel.LONGEST else None


@cache
def _kernel() -> Any:
    """The module with the kernel, where triton 3.4 or newer is installed; nobody else imports it."""
    try:
        return importlib.import_module("dprm.order.triton_fold")
    except ImportError:
        return None


def _only(x: Tensor, keep: Tensor) -> Tensor:
    """x [B,L] where keep [B,L] int32 is −1, and 0 where it is 0, also for NaN: several times faster than `where`."""
    return (x.view(torch.int32) & keep).view(torch.float32)
