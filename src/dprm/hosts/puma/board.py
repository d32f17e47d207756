"""The geometry of a Sudoku: which cells share a unit, and what a canvas of it looks like.

The canvas is the grid itself, cell by cell: clues are given tokens in their own places and blanks are masks. A canvas
that repeats the clues in front of the answer has to spend its first layers on copying 81 cells to 81 others, and is
twice as long; in place, a cell and its clue are the same position, and row, column and box are known as sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Board:
    """Boxes of `tall` × `wide` cells; the grid has side tall·wide.

    Digits 1 … size are tokens 0 … size−1; the mask is the last token.
    """

    tall: int = 3
    wide: int = 3

    @property
    def size(self) -> int:
        """Side of the grid, and number of digits."""
        return self.tall * self.wide

    @property
    def cells(self) -> int:
        """Positions of the canvas."""
        return self.size**2

    @property
    def mask_id(self) -> int:
        """The token of a blank."""
        return self.size

    @property
    def vocabulary(self) -> int:
        """Digits and the mask."""
        return self.size + 1

    @cached_property
    def sides(self) -> tuple[tuple[int, ...], ...]:
        """Row, column and box of every cell."""
        row = tuple(cell // self.size for cell in range(self.cells))
        column = tuple(cell % self.size for cell in range(self.cells))
        # A band of `tall` rows holds as many boxes as fit beside each other: tall.
        box = tuple(r // self.tall * self.tall + c // self.wide for r, c in zip(row, column))
        return row, column, box

    @cached_property
    def units(self) -> Tensor:
        """[3·size, size] the cells of every row, column and box."""
        return torch.tensor(
            [[cell for cell in range(self.cells) if side[cell] == k] for side in self.sides for k in range(self.size)]
        )

    @cached_property
    def peers(self) -> tuple[tuple[int, ...], ...]:
        """For every cell the others that share a unit with it."""
        return tuple(
            tuple(
                other
                for other in range(self.cells)
                if other != cell and any(side[other] == side[cell] for side in self.sides)
            )
            for cell in range(self.cells)
        )

    def read(self, line: str) -> Tensor:
        """Canvas [cells] of a line of digits with `.` or `0` for blanks.

        Raises:
            ValueError: naming the place and what is wrong there.
        """
        line = line.strip()
        if len(line) != self.cells:
            raise ValueError(f"the line has {len(line)} characters: expected {self.cells}")
        for place, character in enumerate(line):
            if character != "." and not (character.isascii() and character.isdigit() and int(character) <= self.size):
                raise ValueError(
                    f"character {place + 1} is {character!r}: expected 1 … {self.size}, or . or 0 for a blank"
                )
        return torch.tensor([self.mask_id if character in ".0" else int(character) - 1 for character in line])

    def write(self, canvas: Tensor) -> str:
        """The line of a canvas [cells], `.` for blanks."""
        return "".join("." if token >= self.size else str(token + 1) for token in canvas.tolist())


NINE = Board(3, 3)
SIX = Board(2, 3)
