"""Pairs of captions and pictures: problems of the held-out splits, and endless training sequences."""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.data.scenes import grids
from dprm.data.stock import Stock
from dprm.hosts.omni import canvas
from dprm.hosts.omni.captions import LONGEST, Caption, captions

# Pairs that training draws from.
TRAINED = 48_000
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


class PictureData(Stock):
    """Endless training sequences: everything but the caption is to be predicted."""

    def __init__(self, seed: int, device: torch.device | str, count: int = TRAINED):
        sequences = canvas.whole(*pairs("train", count, seed)).to(torch.uint8).to(device)
        super().__init__(sequences, torch.arange(canvas.LENGTH) >= LONGEST, canvas.MASK, seed, device)
