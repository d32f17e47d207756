"""The check that no model has made: what a picture shows, by its templates, and whether the caption is true of it.

A cell of the grid shows the content whose drawing differs from it in the fewest of its 25 codes, if these are at most
two; otherwise it shows nothing that has a name, and the picture is broken there. Shapes: N pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dprm.data.scenes import CELLS, COLOURS, SHAPES, SIZES, drawn
from dprm.hosts.omni.captions import Caption

# Codes of a cell that may differ from its template.
SLIPS = 2
BROKEN = 255


def seen(pictures: Tensor) -> Tensor:
    """[N,9] uint8 grids of pictures [N,16,16]; BROKEN where a cell shows nothing that has a name."""
    contents = torch.arange(1 + len(SHAPES) * len(COLOURS) * len(SIZES), dtype=torch.uint8)
    middle = torch.zeros(len(contents), CELLS * CELLS, dtype=torch.uint8)
    middle[:, 4] = contents
    templates = _cells(drawn(middle, pictures.shape[1]))[:, 4]
    wrong = (_cells(pictures.cpu()).unsqueeze(2) != templates).sum(3)
    fewest, content = wrong.min(2)
    return torch.where(fewest <= SLIPS, content, BROKEN).to(torch.uint8)


def _cells(pictures: Tensor) -> Tensor:
    """[N,9,25] the codes of every cell."""
    width = pictures.shape[1] // CELLS
    start = pictures.shape[1] - CELLS * width
    inside = pictures[:, start:, start:].unfold(1, width, width).unfold(2, width, width)
    return inside.reshape(len(pictures), CELLS * CELLS, width * width)


def checked(captions: Sequence[Caption], pictures: Tensor) -> Tensor:
    """[N,2]: the share of what is said that is true of the picture, and whether all is and no cell is broken."""
    rows = []
    for caption, grid in zip(captions, seen(pictures).tolist(), strict=True):
        whole = [0 if content == BROKEN else content for content in grid]
        parts = caption.parts(whole)
        rows.append([sum(parts) / len(parts), float(all(parts) and BROKEN not in grid)])
    return torch.tensor(rows).view(len(rows), 2)
