"""An exact Sudoku solver on bitmasks: depth-first, always at the cell with the fewest digits left.

Grids are lists of digits 0 … size−1, −1 where blank. Bit d of a mask stands for digit d.
"""

from __future__ import annotations

from collections.abc import Callable

from dprm.hosts.puma.board import Board

Grid = list[int]


class Solver:
    """Finds completions of grids of one board."""

    def __init__(self, board: Board):
        self.board = board
        self.all_digits = (1 << board.size) - 1
        self._where = list(zip(*board.sides))

    def solve(self, grid: Grid, choose: Callable[[list[int]], int] | None = None) -> Grid | None:
        """A completion, or None.

        Args:
            choose: picks which of several digits is tried first; default: the smallest.
        """
        used = self.used(grid)
        if used is None:
            return None
        grid = list(grid)
        blanks = [cell for cell, digit in enumerate(grid) if digit < 0]
        return grid if self._descend(grid, used, blanks, choose) else None

    def used(self, grid: Grid) -> tuple[list[int], list[int], list[int]] | None:
        """Masks of the digits present in every row, column and box; None if one is there twice."""
        rows, columns, boxes = ([0] * self.board.size for _ in range(3))
        for cell, digit in enumerate(grid):
            if digit >= 0:
                r, c, b = self._where[cell]
                bit = 1 << digit
                if (rows[r] | columns[c] | boxes[b]) & bit:
                    return None
                rows[r] |= bit
                columns[c] |= bit
                boxes[b] |= bit
        return rows, columns, boxes

    def _descend(
        self,
        grid: Grid,
        used: tuple[list[int], list[int], list[int]],
        blanks: list[int],
        choose: Callable[[list[int]], int] | None,
    ) -> bool:
        if not blanks:
            return True
        rows, columns, boxes = used
        everything, where = self.all_digits, self._where
        fewest, place, options = self.board.size + 1, 0, 0
        for index, cell in enumerate(blanks):
            r, c, b = where[cell]
            left = everything & ~(rows[r] | columns[c] | boxes[b])
            count = left.bit_count()
            if count < fewest:
                fewest, place, options = count, index, left
                if count <= 1:
                    break
        cell = blanks[place]
        r, c, b = where[cell]
        rest = blanks[:place] + blanks[place + 1 :]
        while options:
            bit = options & -options
            if choose is not None and options != bit:
                bit = 1 << choose([digit for digit in range(self.board.size) if options >> digit & 1])
            options ^= bit
            rows[r] |= bit
            columns[c] |= bit
            boxes[b] |= bit
            if self._descend(grid, used, rest, choose):
                grid[cell] = bit.bit_length() - 1
                return True
            rows[r] ^= bit
            columns[c] ^= bit
            boxes[b] ^= bit
        return False

    def forced(self, grid: Grid, cell: int, digit: int) -> bool:
        """Whether every completion of `grid`, in which `cell` is blank, has `digit` there."""
        used = self.used(grid)
        assert used is not None
        rows, columns, boxes = used
        r, c, b = self._where[cell]
        others = self.all_digits & ~(rows[r] | columns[c] | boxes[b] | 1 << digit)
        while others:
            bit = others & -others
            others ^= bit
            if self.solve([*grid[:cell], bit.bit_length() - 1, *grid[cell + 1 :]]) is not None:
                return False
        return True

    def is_unique(self, grid: Grid) -> bool:
        """Whether there is exactly one completion."""
        solution = self.solve(grid)
        if solution is None:
            return False
        # Two completions differ somewhere: make every blank in turn be something else.
        filled = list(grid)
        for cell, digit in enumerate(grid):
            if digit < 0:
                if not self.forced(filled, cell, solution[cell]):
                    return False
                filled[cell] = solution[cell]
        return True
