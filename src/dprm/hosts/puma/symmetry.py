"""The symmetries of Sudoku: what multiplies a stock of puzzles, and what keeps splits apart under it.

Relabelling digits, permuting rows inside a band, bands, columns inside a stack, stacks, and, where boxes are square,
transposing: each maps solutions to solutions and keeps uniqueness. On 9×9 that is 9!·2·(3!)⁸ ≈ 1.2·10¹² images of every
puzzle. Shapes: B rows, C cells.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.data.splits import in_split
from dprm.hosts.puma.board import Board
from dprm.hosts.puma.puzzles import Puzzles
from dprm.order.noise import mix_rows


def scramble(puzzles: Puzzles, board: Board, draws: Draws) -> Puzzles:
    """A random image of every puzzle."""
    rows, size = len(puzzles), board.size
    row = _lines(draws, rows, size // board.tall, board.tall)
    column = _lines(draws, rows, size // board.wide, board.wide)
    source = (row.unsqueeze(2) * size + column.unsqueeze(1)).flatten(1)
    if board.tall == board.wide:
        flipped = (column.unsqueeze(1) * size + row.unsqueeze(2)).flatten(1)
        source = torch.where(draws.below(2, rows, 1) == 0, source, flipped)
    digit = draws.permutations(rows, size)
    return Puzzles(digit.gather(1, puzzles.solution.gather(1, source)), puzzles.clue.gather(1, source))


def _lines(draws: Draws, rows: int, groups: int, each: int) -> Tensor:
    """[B, groups·each]: which line comes to each place, groups permuted and lines permuted inside their group."""
    group = draws.permutations(rows, groups)
    inside = draws.permutations(rows, groups, each)
    return (group.unsqueeze(2) * each + inside).flatten(1)


def invariant(puzzles: Puzzles, board: Board, rounds: int = 4) -> Tensor:
    """[B] int64 ≥ 0: a hash that all images of a puzzle share.

    Colour refinement: the colour of a cell starts as whether it is a clue, and absorbs, round by round, the multiset of
    colours in its row and in its column (as an unordered pair), in its box, and on the cells of the same digit. Sums of
    hashed colours do not depend on any order, so the sum over the final colours does not either.
    """
    row, column, box = (torch.tensor(side, device=puzzles.clue.device).expand_as(puzzles.clue) for side in board.sides)
    colour = puzzles.clue.long()
    for turn in range(rounds):
        mixed = mix_rows(colour, turn)
        by_row, by_column, by_box, by_digit = (
            _sum_over(mixed, member, board.size) for member in (row, column, box, puzzles.solution)
        )
        lines = (
            mix_rows(by_row, 1) + mix_rows(by_column, 1)
            if board.tall == board.wide
            else mix_rows(by_row, 3) + by_column
        )
        colour = mix_rows(mixed ^ mix_rows(lines, 5) ^ mix_rows(by_box, 7) ^ mix_rows(by_digit, 9), turn)
    return mix_rows(mix_rows(colour, 11).sum(1), 13) & (2**62 - 1)


def _sum_over(colour: Tensor, member: Tensor, groups: int) -> Tensor:
    """[B,C] Σ over the cells of the same group, modulo 2⁶⁴."""
    return colour.new_zeros(len(colour), groups).scatter_add(1, member, colour).gather(1, member)


def of_split(puzzles: Puzzles, board: Board, split: str, chunk: int = 2048) -> Puzzles:
    """The puzzles of a split; all images of a puzzle are in the same one."""
    keys = [invariant(puzzles[start : start + chunk], board) for start in range(0, len(puzzles), chunk)]
    return puzzles[in_split(torch.cat(keys), split)]


class SudokuData:
    """Training sequences: random images of a stock of puzzles (see `masks.Data`).

    Args:
        puzzles: the stock, all of one split. seed: of the images.
    """

    def __init__(self, puzzles: Puzzles, board: Board, seed: int = 0, device: torch.device | str = "cpu"):
        self.board, self.seed, self.device, self.mask_id = board, seed, device, board.mask_id
        self.puzzles = puzzles.to(device)

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        draws = Draws("images", self.seed, step, device=self.device)
        chosen = self.puzzles[draws.below(len(self.puzzles), rows)]
        image = scramble(chosen, self.board, draws)
        return image.solution, ~image.clue
