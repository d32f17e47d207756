"""Pairs of captions and pictures: problems of the held-out splits, and endless training sequences.

A caption leaves open where things stand, and nothing else may be in the picture or many things. A small model that
takes the most probable code of every position would paint none of them: each single place is more likely empty. So most
training pictures are tidy. They show what is said and nothing else, in rows from the top left, or with a relation each
at its own side; what has no size is large. The others are the scenes as they were drawn.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.data.scenes import CELLS, grids
from dprm.data.stock import Stock
from dprm.hosts.omni import canvas
from dprm.hosts.omni.captions import LONGEST, RELATIONS, Caption, captions

# Pairs that training draws from.
TRAINED = 36_000
# Of their pictures, the share that is tidy.
TIDY = 0.85
# Of the scenes of a split, the share that has a caption of the same split is at least one in so many.
_SHARE = {"train": 2, "fit": 12, "select": 12, "test": 12}


def pairs(split: str, count: int, seed: int = 0, distinct: bool = False) -> tuple[list[Caption], Tensor]:
    """Captions, and grids [N,9] of which they are true; both of the split.

    Args:
        distinct: no caption says what another one says.
    """
    listed: dict[int, tuple[Caption, Tensor]] = {}
    scenes = _SHARE[split] * count + 64
    while True:
        drawn = grids(split, scenes, seed)
        for row, (caption, grid) in enumerate(zip(captions(drawn, split, seed), drawn)):
            if caption is not None:
                listed.setdefault(caption.key if distinct else row, (caption, grid))
            if len(listed) == count:
                chosen = list(listed.values())
                return [caption for caption, _ in chosen], torch.stack([grid for _, grid in chosen])
        scenes *= 2


def tidy(caption: Caption) -> Tensor:
    """[9] uint8 the tidy grid of a caption."""
    first, second, relation = caption.first, caption.second, caption.relation
    order = list(range(CELLS**2))
    grid = torch.zeros(CELLS**2, dtype=torch.uint8)
    if relation in ("left of", "right of"):
        # Column by column.
        order = [cell % CELLS * CELLS + cell // CELLS for cell in order]
    if relation in ("right of", "below"):
        assert second is not None
        first, second = second, first
    grid[order[: first.count]] = first.content
    if second is not None:
        # With a relation, its own rows or columns, as near to the other end as may be.
        rest = order[first.count :]
        if relation in RELATIONS:
            lines = -(-second.count // CELLS)
            rest = order[CELLS * (CELLS - lines) :]
        grid[rest[: second.count]] = second.content
    return grid


class PictureData(Stock):
    """Endless training sequences: everything but the caption is to be predicted."""

    def __init__(self, seed: int, device: torch.device | str, count: int = TRAINED):
        captions, drawn = pairs("train", count, seed)
        tidied = torch.stack([tidy(caption) for caption in captions])
        often = Draws("tidy", seed).uniform(count, 1) < TIDY
        sequences = canvas.whole(captions, torch.where(often, tidied, drawn)).to(torch.uint8).to(device)
        super().__init__(sequences, torch.arange(canvas.LENGTH) >= LONGEST, canvas.MASK, seed, device)
