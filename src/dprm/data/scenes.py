"""A generated world of small pictures: coloured shapes of two sizes in the cells of a 3×3 grid.

A scene is some groups of equal shapes. Half of the scenes have two of their groups apart: one all to the left of the
other, or all above it. What is drawn of a scene is a picture of palette indices ("codes"), of 16×16 or 32×32; the lower
rim of a shape is in a darker tone. A scene belongs to one split by what it shows, so that no training picture comes
again in a test.
Shapes: N scenes, 9 cells row by row, S the side of a picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.splits import in_split
from dprm.data.stock import Fields, collected

SHAPES = ("circle", "square", "triangle", "cross")
COLOURS = ("red", "green", "blue", "yellow", "purple", "orange")
SIZES = ("small", "large")
# Cells of a row, and of a column.
CELLS = 3
BACKGROUND = 0
# [K,3]: the background, then every colour, then its darker tone.
_BRIGHT = ((222, 45, 38), (49, 163, 84), (49, 110, 220), (250, 204, 21), (136, 60, 190), (245, 130, 32))
PALETTE = torch.tensor(
    [(246, 246, 242), *_BRIGHT, *[tuple(round(0.62 * part) for part in tone) for tone in _BRIGHT]], dtype=torch.uint8
)
# Scenes drawn at a time.
_ROUND = 8192


@dataclass(frozen=True, order=True)
class Item:
    """One shape: indices of SHAPES, COLOURS and SIZES, and the cell it is in."""

    shape: int
    colour: int
    size: int
    row: int
    column: int


@dataclass(frozen=True)
class Scene:
    """The shapes of a picture, in the order of their cells."""

    items: tuple[Item, ...]

    @classmethod
    def of(cls, grid: Tensor) -> Scene:
        """The scene of a grid [9], see `grids`."""
        listed = []
        for cell, content in enumerate(grid.tolist()):
            if content:
                kind, size = divmod(content - 1, len(SIZES))
                shape, colour = divmod(kind, len(COLOURS))
                listed.append(Item(shape, colour, size, cell // CELLS, cell % CELLS))
        return cls(tuple(listed))

    @property
    def grid(self) -> Tensor:
        """[9] uint8, see `grids`."""
        grid = torch.zeros(CELLS * CELLS, dtype=torch.uint8)
        for item in self.items:
            cell = item.row * CELLS + item.column
            if grid[cell]:
                raise ValueError(f"scene has two items in row {item.row}, column {item.column}: expected one a cell")
            grid[cell] = 1 + (item.shape * len(COLOURS) + item.colour) * len(SIZES) + item.size
        return grid


def scenes(split: str, count: int, seed: int = 0) -> list[Scene]:
    """`count` distinct scenes of a split: train, fit, select or test."""
    return [Scene.of(grid) for grid in grids(split, count, seed)]


def grids(split: str, count: int, seed: int = 0) -> Tensor:
    """[N,9] uint8, the same scenes as numbers: 0 for an empty cell, else 1 + (shape·6 + colour)·2 + size."""

    def draw(turn: int) -> Fields:
        rows = _drawn(Draws("scenes", seed, turn), _ROUND)
        return (rows[in_split(row_hash(rows), split)],)

    return collected(draw, count, f"the world of scenes ({split})", lambda fields: row_hash(fields[0]))[0]


def _drawn(draws: Draws, rows: int) -> Tensor:
    """[N,9] scenes of all splits."""
    cell = torch.arange(CELLS * CELLS)
    groups = 1 + (draws.uniform(rows, 1) < 0.8).long() + (draws.uniform(rows, 1) < 0.35).long()
    counts = 1 + draws.below(4, rows, 3)
    kind, size = draws.below(len(SHAPES) * len(COLOURS), rows, 3), draws.below(len(SIZES), rows, 3)
    # Of a group all have one size, or every item its own.
    mixed, own = draws.uniform(rows, 3) < 0.3, draws.below(len(SIZES), rows, len(cell))
    # 0: anywhere; 1: groups 0 and 1 are apart from left to right; 2: from top to bottom.
    layout = draws.below(4, rows, 1) % 3
    along = torch.where(layout == 1, cell % CELLS, cell // CELLS)
    first = (along < 1 + draws.below(2, rows, 1)) | (layout == 0)
    second = ~first | (layout == 0)
    grid = torch.zeros(rows, len(cell), dtype=torch.int64)
    for group, side in enumerate((first, second, torch.ones_like(first))):
        free = side & (grid == 0) & (group < groups)
        rank = draws.uniform(rows, len(cell)).masked_fill(~free, 2.0).argsort(1).argsort(1)
        here = free & (rank < counts[:, group : group + 1])
        one_size = size[:, group : group + 1].expand_as(own)
        content = 1 + kind[:, group : group + 1] * len(SIZES) + torch.where(mixed[:, group : group + 1], own, one_size)
        grid = torch.where(here, content, grid)
    return grid.to(torch.uint8)


def codes(scene: Scene, side: int) -> Tensor:
    """[S,S] int64 palette indices of the picture; S is 16 or 32."""
    return drawn(scene.grid.unsqueeze(0), side)[0]


def drawn(grid: Tensor, side: int) -> Tensor:
    """[N,S,S] int64 palette indices of the pictures of grids [N,9]."""
    cells = _cells(side)[grid.long()]
    width = cells.shape[-1]
    inside = cells.view(len(grid), CELLS, CELLS, width, width).transpose(2, 3).reshape(len(grid), 3 * width, 3 * width)
    picture = torch.full((len(grid), side, side), BACKGROUND)
    margin = (side - 3 * width + 1) // 2
    picture[:, margin : margin + 3 * width, margin : margin + 3 * width] = inside
    return picture


@cache
def _cells(side: int) -> Tensor:
    """[C,w,w] the codes of a cell for every content it can have."""
    if side not in (16, 32):
        raise ValueError(f"side is {side}: expected 16 or 32")
    width = 5 * side // 16
    cells = torch.full((1 + len(SHAPES) * len(COLOURS) * len(SIZES), width, width), BACKGROUND)
    for content in range(1, len(cells)):
        kind, size = divmod(content - 1, len(SIZES))
        shape, colour = divmod(kind, len(COLOURS))
        filled = outline(SHAPES[shape], (3 + size) * side // 16)
        # A pixel is dark where the shape ends below it.
        below = torch.cat([filled[1:], torch.zeros_like(filled[:1])])
        tone = torch.where(below, 1 + colour, 1 + len(COLOURS) + colour)
        # Small shapes stand in the middle, or what is nearest to it.
        start = (width - len(filled)) // 2
        cells[content, start : start + len(filled), start : start + len(filled)] = torch.where(
            filled, tone, torch.tensor(BACKGROUND)
        )
    return cells


def outline(shape: str, width: int) -> Tensor:
    """[w,w] bool, the pixels of a shape."""
    y, x = torch.arange(width).unsqueeze(1), torch.arange(width).unsqueeze(0)
    middle = (width - 1) / 2
    if shape == "square":
        return torch.ones(width, width, dtype=torch.bool)
    if shape == "circle":
        return (x - middle) ** 2 + (y - middle) ** 2 <= width**2 / 4 - 0.5
    if shape == "triangle":
        return (x - middle).abs() <= (y + 1) / 2
    if shape == "cross":
        thick = int(width > 4)
        return ((x - y).abs() <= thick) | ((x + y - (width - 1)).abs() <= thick)
    raise ValueError(f"shape is {shape!r}: expected one of {', '.join(SHAPES)}")


def pixels(codes: Tensor) -> Tensor:
    """[…,3] uint8 RGB of palette indices […]."""
    return PALETTE[codes.long()]
