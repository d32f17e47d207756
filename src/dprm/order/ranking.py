"""The largest of every row: exact, ties to the left, with a budget for each row and without a sync.

Shapes: B rows, L positions, K the largest budget.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.checks import can_look


class Picks(NamedTuple):
    """position[b,k] of row b is selected where kept[b,k]; kept is None where all are. Both [B,K].

    flags: the same as [B,L] bool, where finding the positions has given that too.
    """

    position: Tensor
    kept: Tensor | None
    flags: Tensor | None = None

    def kept_flags(self) -> Tensor:
        """[B,K] bool, also where all are kept."""
        return torch.ones_like(self.position, dtype=torch.bool) if self.kept is None else self.kept

    def mask(self, length: int) -> Tensor:
        """[B,L] bool. A position may stand again where it is not kept: a sum does not mind, a write would."""
        if self.flags is not None:
            return self.flags
        shape, device = (self.position.shape[0], length), self.position.device
        if self.kept is None:
            return torch.zeros(shape, dtype=torch.bool, device=device).scatter_(1, self.position, True)
        counts = torch.zeros(shape, dtype=torch.uint8, device=device)
        return counts.scatter_add_(1, self.position, self.kept.view(torch.uint8)).view(torch.bool)


# Non-candidates are pushed this far down: below every score, and x - 0 leaves a candidate's score as it was.
_PUSH = 1e30
_FLOOR = -1e29


def only(candidates: Tensor, rank: Tensor, positive: bool = False, out: Tensor | None = None) -> Tensor:
    """`rank` where candidates, elsewhere level and nowhere above them: masked_fill, several times faster on a CPU.

    (The detour over uint8 is part of that: bool converts to float three times more slowly.)

    Args:
        positive: no rank is below 0. Non-candidates are then 0, as candidates may be; otherwise far below everything.
        out: where to write, `rank` itself if nobody else needs it.
    """
    if positive:
        return torch.mul(rank, candidates.view(torch.uint8), out=out)
    return torch.sub(rank, (~candidates).view(torch.uint8), alpha=_PUSH, out=out)


def largest(rank: Tensor, candidates: Tensor, count: int | Tensor, most: int) -> Picks:
    """The `count` largest candidates of every row, ties to the left; `most` is the largest count, known without a sync.

    `rank` has gone through `only`. Where no tie crosses the edge of any row, all above the edge are the answer. To know
    that costs a look at the values; where there is a tie, and always on accelerators, where a look would cost a sync,
    the candidates at the edge are counted off from the left.
    """
    rows, length = rank.shape
    width = min(most, length)
    if width == 0 or rows == 0:
        return Picks(torch.zeros(rows, 0, dtype=torch.int64, device=rank.device), None)
    if isinstance(count, int):
        picks = clear_cut(rank, width)
        if picks is not None:
            return picks
        return _counted(rank, candidates, width, rank.topk(width, dim=1).values[:, -1:], width)
    column = count.unsqueeze(1)
    top, index = rank.topk(min(width + 1, length), dim=1)
    last = top.shape[1] - 1
    edge = top.gather(1, (column - 1).clamp_(0, last)).masked_fill_(column < 1, torch.inf)
    if width < length and can_look(rank) and bool((edge > top.gather(1, column.clamp(max=last))).all()):
        return Picks(index[:, :width], torch.arange(width) < column)
    return _counted(rank, candidates, column, edge, width)


def clear_cut(rank: Tensor, width: int) -> Picks | None:
    """The `width` largest of every row, if no tie has to be broken and it takes no sync to know that; else None.

    The cut is clear where the last one taken is strictly above the first one left: also no non-candidate is then taken,
    for those are all level at the bottom. For few of many `torch.topk` keeps a heap. Otherwise it moves pairs of value
    and position about, one unpredictable branch after the other; to sort the bare values, in the parallel lanes of the
    processor, and to compare all with the first one left takes a quarter of the time.
    """
    rows, length = rank.shape
    if width >= length or not can_look(rank):
        return None
    if (width + 1) * 64 < length:
        top, index = rank.topk(width + 1, dim=1)
        clear = bool((top.select(1, width - 1) > top.select(1, width)).all())
        return Picks(index.narrow(1, 0, width), None) if clear else None
    values = rank.numpy()
    first_left = length - width - 1
    ascending = values.copy()
    ascending.sort(axis=1)
    above = values > ascending[:, first_left : first_left + 1]
    place = above.ravel().nonzero()[0]
    if len(place) < rows * width:
        return None
    return Picks(torch.from_numpy(place % length).view(rows, width), None, torch.from_numpy(above))


def _counted(rank: Tensor, candidates: Tensor, count: int | Tensor, edge: Tensor, width: int) -> Picks:
    """All above the edge [B,1], and of the candidates level with it as many from the left as there is room for."""
    above, level = rank > edge, (rank == edge) & candidates
    room = count - above.sum(1, keepdim=True)
    take = above | (level & (level.cumsum(1) <= room))
    top, index = torch.where(take, rank, -torch.inf).topk(width, dim=1)
    return Picks(index, top > _FLOOR)
