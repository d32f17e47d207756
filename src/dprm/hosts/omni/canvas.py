"""The canvas of a picture: 16 words, then the template of 260 slots.

    position 0 … 15      the caption, one token a word, then blanks
    position 16          BEGIN of the picture
    position 17 … 272    256 visual codes, row by row
    position 273 … 275   END of the picture, end of the TURN, end of the TEXT

All 260 slots are masked at the start, the format tokens among them. Codes and format tokens come first in the
vocabulary: only they are ever revealed. Shapes: N pictures, L = 276 positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dprm.data.scenes import CELLS, PALETTE, drawn
from dprm.hosts.omni.captions import LONGEST, WORDS, Caption

SIDE = 16
CODES = len(PALETTE)
# A code in writing: the background, the colours, and in capitals their darker tones.
LETTERS = "." + "rgbypo" + "RGBYPO"
BEGIN, END, TURN, TEXT = range(CODES, CODES + 4)
# Codes and format tokens.
SHOWN = CODES + 4
TOKEN = {word: SHOWN + index for index, word in enumerate(WORDS)}
BLANK, MASK = SHOWN + len(WORDS), SHOWN + len(WORDS) + 1
VOCABULARY = MASK + 1
SLOTS = SIDE * SIDE + 4
LENGTH = LONGEST + SLOTS
FIRST = LONGEST + 1


def _sides() -> tuple[tuple[int, ...], ...]:
    """What the model is told about a position: its word or its part of the template; of a code also row, column, the
    cell of the grid it lies in, and where in that cell."""
    width = SIDE // CELLS
    part = [*range(LONGEST), LONGEST, *[LONGEST + 1] * SIDE**2, LONGEST + 2, LONGEST + 3, LONGEST + 4]
    places = []
    for row in range(SIDE):
        for column in range(SIDE):
            inside = row > 0 and column > 0
            cell = 1 + (row - 1) // width * CELLS + (column - 1) // width if inside else 0
            offset = 1 + (row - 1) % width * width + (column - 1) % width if inside else 0
            places.append((1 + row, 1 + column, cell, offset))
    columns = [(0,) * FIRST + column + (0, 0, 0) for column in zip(*places)]
    return (tuple(part), *columns)


SIDES = _sides()


def words(captions: Sequence[Caption]) -> Tensor:
    """[N,16] int64 the tokens of captions, filled up with BLANK."""
    rows = torch.full((len(captions), LONGEST), BLANK)
    for row, caption in enumerate(captions):
        tokens = [TOKEN[word] for word in str(caption).split()]
        rows[row, : len(tokens)] = torch.tensor(tokens)
    return rows


def blank(captions: Sequence[Caption]) -> Tensor:
    """[N,276] int64 canvases with nothing but the caption."""
    return torch.cat([words(captions), torch.full((len(captions), SLOTS), MASK)], 1)


def whole(captions: Sequence[Caption], grids: Tensor) -> Tensor:
    """[N,276] int64 captions with the pictures of grids [N,9]."""
    codes = drawn(grids, SIDE).flatten(1)
    begin = torch.full((len(codes), 1), BEGIN)
    after = torch.tensor([END, TURN, TEXT]).expand(len(codes), -1)
    return torch.cat([words(captions), begin, codes, after], 1)


def picture(tokens: Tensor) -> Tensor:
    """[N,16,16] int64 the codes of canvases [N,276]; a slot without a code reads as background."""
    codes = tokens[:, FIRST : FIRST + SIDE**2]
    return torch.where(codes < CODES, codes, 0).view(-1, SIDE, SIDE)
