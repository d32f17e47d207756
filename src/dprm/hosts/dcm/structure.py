"""Whether the structure that people look at is still there in answers: neighbours, and types of cells.

    neighbours  of the 15 cells that are nearest to a cell, the share that is nearest to it among the answers too
    types       whether most of the 15 that are nearest among the answers are of the type that the cell is of

As scib asks of integrated data. No order is rewarded for either. A data set without labels has types by its own
training cells: their clusters, by k-means in the direction of their bins. Shapes: N cells, G genes, K types.
"""

from __future__ import annotations

import torch
from torch import Tensor

NEAREST, TYPES = 15, 8
_STARTS, _ROUNDS = 10, 50


def kept_neighbours(tokens: Tensor, target: Tensor, count: int = NEAREST) -> Tensor:
    """[N] share of the nearest other cells, by their bins [N,G], that are nearest among the answers too."""
    if len(target) < 3:
        return torch.ones(len(target))
    near = []
    for cells in (tokens, target):
        near.append(torch.zeros(len(cells), len(cells), dtype=torch.bool).scatter_(1, nearest(cells, count), True))
    return (near[0] & near[1]).sum(1) / near[1].sum(1)


def kept_types(tokens: Tensor, kind: Tensor, count: int = NEAREST) -> Tensor:
    """[N] 1 where most of the nearest among the answers [N,G] are of the type [N] of the cell itself, else 0."""
    if len(kind) < 3:
        return torch.ones(len(kind))
    votes = torch.nn.functional.one_hot(kind[nearest(_directions(tokens), count)], int(kind.max()) + 1).sum(1)
    return (votes.argmax(1) == kind).float()


def nearest(cells: Tensor, count: int) -> Tensor:
    """[N,n] the nearest other cells of every cell [N,G], at most `count`."""
    distance = torch.cdist(cells.float(), cells.float()).fill_diagonal_(torch.inf)
    return distance.topk(min(count, len(cells) - 1), largest=False).indices


def centres(train: Tensor, types: int = TYPES) -> Tensor:
    """[K,G] the centres of the types of training cells [N,G]: the best of several k-means, in their directions."""
    cells, generator = _directions(train), torch.Generator().manual_seed(0)
    tried = []
    for _ in range(_STARTS):
        middle = cells[torch.randperm(len(cells), generator=generator)[:types]]
        for _ in range(_ROUNDS):
            total = torch.zeros_like(middle).index_add_(0, (cells @ middle.T).argmax(1), cells)
            moved = torch.where(total.any(1, keepdim=True), _directions(total), middle)
            if torch.equal(moved, middle):
                break
            middle = moved
        tried.append((float((cells @ middle.T).max(1).values.sum()), middle))
    return max(tried, key=lambda each: each[0])[1]


def types_of(cells: Tensor, middle: Tensor) -> Tensor:
    """[N] int64, the type of every cell [N,G]: the nearest of the centres [K,G]."""
    return (_directions(cells) @ middle.T).argmax(1)


def _directions(cells: Tensor) -> Tensor:
    return torch.nn.functional.normalize(cells.float(), dim=1)
