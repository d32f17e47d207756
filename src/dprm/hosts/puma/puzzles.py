"""Sudokus with exactly one solution, and the stock of them that trainings draw from.

A random full grid is dug: cells are blanked in random order as long as every completion keeps the digit there, until
the wanted number of clues is left. Puzzle i of a seed depends on (seed, i) only. Shapes: N puzzles, C cells.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.underway import tell
from dprm.hosts.puma.board import Board
from dprm.hosts.puma.solver import Grid, Solver
from dprm.order.noise import mix
from dprm.train import checkpoint

# Fewest and most clues wanted, by side of the grid.
CLUES = {9: (26, 36), 6: (10, 16), 4: (4, 8)}
# Of 200 grids dug to the end 1 has fewer than 22 clues left; the median is 24.
REACHED = {9: 22}


@dataclass(frozen=True)
class Puzzles:
    """N puzzles.

    Attributes:
        solution: [N,C] int64, digits 0 … size−1.
        clue: [N,C] bool, the cells that are given.
    """

    solution: Tensor
    clue: Tensor

    def __len__(self) -> int:
        return len(self.clue)

    def __getitem__(self, rows: Tensor | slice) -> Puzzles:
        """Some of the puzzles, by index, mask or slice."""
        return Puzzles(self.solution[rows], self.clue[rows])

    def to(self, device: torch.device | str) -> Puzzles:
        """The same puzzles elsewhere."""
        return Puzzles(self.solution.to(device), self.clue.to(device))

    def canvases(self, board: Board) -> Tensor:
        """[N,C] canvases with the blanks masked."""
        return self.solution.masked_fill(~self.clue, board.mask_id)


def full_grid(board: Board, rng: random.Random) -> Grid:
    """A random complete grid: a random first row and random choices after it."""
    first = rng.sample(range(board.size), board.size)
    solution = Solver(board).solve([*first, *[-1] * (board.cells - board.size)], rng.choice)
    assert solution is not None
    return solution


def puzzle(board: Board, clues: tuple[int, int], seed: int, index: int) -> tuple[Grid, list[bool]]:
    """Puzzle `index` of a seed: its solution and which cells are clues.

    Args:
        clues: fewest and most wanted. Where no further cell can be blanked, more are left.
    """
    rng = random.Random(mix(seed, board.tall, board.wide, index))
    solver, solution = Solver(board), full_grid(board, rng)
    wanted = rng.randint(*clues)
    grid, left = list(solution), board.cells
    for cell in rng.sample(range(board.cells), board.cells):
        if left == wanted:
            break
        grid[cell] = -1
        if solver.forced(grid, cell, solution[cell]):
            left -= 1
        else:
            grid[cell] = solution[cell]
    return solution, [digit >= 0 for digit in grid]


def generate(
    board: Board,
    count: int,
    seed: int = 0,
    workers: int = 1,
    first: int = 0,
    clues: tuple[int, int] | None = None,
) -> Puzzles:
    """Puzzles `first` … `first` + `count` − 1 of a seed; the number of processes changes nothing but the time.

    Args:
        clues: fewest and most clues wanted; None: those of `CLUES`. Fewer are harder.
    """
    make, indices = partial(puzzle, board, _checked_clues(board, clues), seed), range(first, first + count)
    if workers == 1:
        made = _counted(map(make, indices), count)
    else:
        # Not a fork: where torch has started threads, a forked process can hang.
        try:
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                made = _counted(pool.map(make, indices, chunksize=64), count)
        except BrokenProcessPool:
            # A script without `if __name__ == "__main__"` cannot start processes: each would run it from the beginning.
            made = _counted(map(make, indices), count)
    return Puzzles(torch.tensor([grid for grid, _ in made]), torch.tensor([clue for _, clue in made]))


def _counted(puzzles: Iterable[tuple[Grid, list[bool]]], count: int) -> list[tuple[Grid, list[bool]]]:
    """All of them, told as they come."""
    made = []
    for puzzle in puzzles:
        made.append(puzzle)
        tell("puzzles", len(made), count)
    return made


def _checked_clues(board: Board, clues: tuple[int, int] | None) -> tuple[int, int]:
    if clues is None:
        if board.size not in CLUES:
            raise ValueError(f"board has side {board.size}: expected one of {', '.join(map(str, CLUES))}, or clues")
        return CLUES[board.size]
    if not 0 <= clues[0] <= clues[1] <= board.cells:
        raise ValueError(f"clues is {clues}: expected (fewest, most) in 0 … {board.cells}")
    return clues


def stock(
    board: Board,
    count: int,
    path: Path,
    seed: int = 0,
    workers: int = 1,
    clues: tuple[int, int] | None = None,
) -> Puzzles:
    """`generate`, kept in a file: generated once, and extended where it holds fewer."""
    facts = {"tall": board.tall, "wide": board.wide, "seed": seed, "clues": list(_checked_clues(board, clues))}
    kept = None
    if path.is_file():
        tensors, found = checkpoint.load(path)
        if found != facts:
            raise ValueError(f"{path} holds puzzles of {found}, not of {facts}: choose another file or delete it")
        kept = Puzzles(tensors["solution"].long(), tensors["clue"])
        if len(kept) >= count:
            return kept[:count]
    first = 0 if kept is None else len(kept)
    made = generate(board, count - first, seed, workers, first, clues)
    if kept is not None:
        made = Puzzles(torch.cat([kept.solution, made.solution]), torch.cat([kept.clue, made.clue]))
    checkpoint.save(path, {"solution": made.solution.to(torch.uint8), "clue": made.clue}, facts)
    return made
