"""The exact Sudoku verifier: every row, column and box holds every digit once, and every clue stands as given."""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.hosts.puma.board import Board


def solved(canvas: Tensor, puzzle: Tensor, board: Board) -> Tensor:
    """[N] bool.

    Args:
        canvas: [N,C] tokens of the finished grids.
        puzzle: [N,C] tokens of the puzzles, the mask where blank.
    """
    clue = puzzle != board.mask_id
    kept = ((canvas == puzzle) | ~clue).all(1)
    return kept & right_units(canvas, board).all(1)


def right_units(canvas: Tensor, board: Board) -> Tensor:
    """[N, 3·size] bool: which rows, columns and boxes hold every digit once."""
    units = canvas[:, board.units.to(canvas.device)]
    digits = torch.arange(board.size, device=canvas.device)
    return (units.unsqueeze(-1) == digits).any(2).all(2)
