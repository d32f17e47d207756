"""The largest of every row: exact, ties to the left, with a budget for each row and without a sync.

Shapes: B rows, L positions, K the largest budget.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.checks import can_look


class Picks(NamedTuple):
    """position[b,k] of row b is selected where kept[b,k]; kept is None where all are. Both [B,K]."""

    position: Tensor
    kept: Tensor | None

    def flags(self) -> Tensor:
        """[B,K] bool, also where all are kept."""
        return torch.ones_like(self.position, dtype=torch.bool) if self.kept is None else self.kept

    def mask(self, length: int) -> Tensor:
        """[B,L] bool. A position may stand again where it is not kept: a sum does not mind, a write would."""
        if self.kept is None:
            flags = torch.zeros(len(self.position), length, dtype=torch.bool, device=self.position.device)
            return flags.scatter_(1, self.position, True)
        counts = torch.zeros(len(self.position), length, dtype=torch.uint8, device=self.position.device)
        return counts.scatter_add_(1, self.position, self.kept.view(torch.uint8)).view(torch.bool)


# Non-candidates are pushed this far down: below every score, and x + 0 leaves a candidate's score as it was.
_PUSH = 1e30
_FLOOR = -1e29


def only(candidates: Tensor, rank: Tensor) -> Tensor:
    """`rank` where candidates, far below everything elsewhere: masked_fill, several times faster on a CPU.

    (The detour over uint8 is part of that: bool converts to float three times more slowly. So is writing into `push`:
    one temporary less is less memory to fetch.)
    """
    push = candidates.view(torch.uint8).to(rank.dtype).sub_(1.0)
    return torch.add(rank, push, alpha=_PUSH, out=push)


def largest(rank: Tensor, count: int | Tensor, most: int) -> Picks:
    """The `count` largest of every row, ties to the left; `most` is the largest count, known without a sync.

    `torch.topk` finds the right values but breaks ties as it likes, and differently for another row length. On the CPU
    its answer is taken where no tie crosses the edge (a look at one number); otherwise, and always on accelerators,
    where a look would cost a sync, the positions at the edge are counted off from the left.
    """
    rows, length = rank.shape
    width = min(most, length)
    if width == 0 or rows == 0:
        return Picks(torch.zeros(rows, 0, dtype=torch.int64, device=rank.device), None)
    top, index = rank.topk(min(width + 1, length), dim=1)
    if isinstance(count, int):
        edge = top[:, width - 1]
        # Strictly above the next one: no tie, and no non-candidate, for those are all level at the bottom.
        if width < length and can_look(rank) and bool((edge > top[:, width]).all()):
            return Picks(index[:, :width], None)
        edge = edge.unsqueeze(1)
    else:
        column = count.unsqueeze(1)
        last = top.shape[1] - 1
        edge = top.gather(1, (column - 1).clamp_(0, last)).masked_fill_(column < 1, torch.inf)
        clear = edge > top.gather(1, column.clamp(max=last))
        if width < length and can_look(rank) and bool(clear.all()):
            return Picks(index[:, :width], torch.arange(width) < column)
    edge = edge.clamp(min=_FLOOR)
    above, level = rank > edge, rank == edge
    room = (count if isinstance(count, int) else count.unsqueeze(1)) - above.sum(1, keepdim=True)
    take = above | (level & (level.cumsum(1) <= room))
    top, index = torch.where(take, rank, -torch.inf).topk(width, dim=1)
    return Picks(index, top > _FLOOR)
