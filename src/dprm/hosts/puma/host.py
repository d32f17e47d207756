"""The Sudoku host: a model, its puzzles, its verifier, and the cells of its decisions."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dprm.data.cores import cores
from dprm.data.draws import row_hash
from dprm.data.lines import read_lines
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.controller import Controller
from dprm.host.difficulty import whole_range
from dprm.host.host import Host, Problems
from dprm.host.metrics import Metric
from dprm.hosts.puma.board import NINE, Board
from dprm.hosts.puma.held_out import split_puzzles
from dprm.hosts.puma.puzzles import CLUES, REACHED, stock
from dprm.hosts.puma.solver import Solver
from dprm.hosts.puma.symmetry import SudokuData, of_split
from dprm.hosts.puma.verifier import solved
from dprm.order import Reading
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import LEARNED_ORDERS, MaskLaws
from dprm.train.transformer import Config

# A process takes seconds to start, in which one makes a hundred puzzles.
PUZZLES_A_PROCESS = 128


class Sudoku(Host):
    """Puzzles with exactly one solution; what is ordered are the blank cells.

    The aux state of a cell is the quarter of its peers that are visible (4) × whether one of its peers holds, or would
    receive, the same digit (2): of two such cells at least one is wrong.
    """

    name = "puma"
    domain = "Sudoku 9×9"
    ordered = "blank cells"
    metrics = (Metric("solved"),)
    # Places along the line of cells; a grid has no end and no number that comes first.
    audit: ClassVar[Mapping[str, Any] | None] = {}
    paper: ClassVar[Controller] = Controller(phases=1, warm=0.001, switch=0.03, decoding_ready=16.0, rule="soft_bon")

    def __init__(
        self,
        model: Model,
        board: Board = NINE,
        device: torch.device | str = "cpu",
        weights: str = "",
        clues: tuple[int, int] | None = None,
    ):
        """Args: fewest and most clues, None: those of `CLUES`."""
        self._model, self.board, self.device = model, board, torch.device(device)
        self.columns, self.weights = board.size, weights
        self.decoding = Decoding(mask_id=board.mask_id, states=8, state_of=self.state_of)
        self.clues = CLUES[board.size] if clues is None else clues
        peers = torch.zeros(board.cells, board.cells)
        for cell, others in enumerate(board.peers):
            peers[cell, list(others)] = 1.0 / len(others)
        self._peers = peers.to(device)

    def model(self) -> Model:
        return self._model

    def at(self, difficulty: str) -> Sudoku:
        """How many clues a puzzle has, such as `22-25`; fewer are harder."""
        other = copy.copy(self)
        other.clues = whole_range(difficulty, "how many clues a puzzle has", self.board.size, self.board.cells - 1)
        if other.clues[1] < REACHED.get(self.board.size, 0):
            want = f"expected one number or FIRST-LAST, up to {REACHED[self.board.size]} clues or more"
            raise ValueError(f"difficulty is {difficulty!r}: digging hardly ever leaves so few clues; {want}")
        other.variant = difficulty
        return other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        return self.answered(split, count, seed)[0]

    def answered(self, split: str, count: int, seed: int = 0) -> tuple[Problems, Tensor]:
        workers = max(1, min(cores(), count // PUZZLES_A_PROCESS))
        made = split_puzzles(self.board, split, count, self.clues, seed, workers)
        return self.posed(made.canvases(self.board)), made.solution.long()

    def posed(self, canvases: Tensor) -> Problems:
        """Problems of given grids [N,C], the mask where blank."""
        return Problems(canvases.to(self.device), row_hash(canvases).to(self.device), list(canvases))

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """Lines of 81 characters with `.` or `0` for blanks, or instances of reasoning-gym's sudoku as JSON."""
        grids, left_out = read_lines(path, self._grid)
        return self.posed(torch.tensor(grids, dtype=torch.int64).view(-1, self.board.cells)), left_out

    def _grid(self, line: str) -> tuple[int, ...]:
        """The canvas of a line, if it has something to reveal and some way to fill it in."""
        grid = tuple(self.board.read(_cells(line)).tolist())
        cells = [-1 if token == self.board.mask_id else token for token in grid]
        if max(cells) < 0 or min(cells) >= 0:
            raise ValueError("there is no clue" if max(cells) < 0 else "there is no blank: nothing to reveal")
        solver = Solver(self.board)
        if solver.used(cells) is None:
            raise ValueError("a row, column or box holds a digit twice")
        if solver.solve(cells) is None:
            raise ValueError("it has no solution")
        return grid

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        return solved(tokens, torch.stack(list(problems.facts)), self.board).float()

    def state_of(self, tokens: Tensor, reading: Reading) -> Tensor:
        """The cell state of every cell of canvases [B,L]."""
        share = (tokens != self.board.mask_id).float() @ self._peers
        digit = reading.tokens.clamp(max=self.board.size - 1)
        among_peers = self._peers @ F.one_hot(digit, self.board.size).float()
        rival = among_peers.gather(2, digit.unsqueeze(2)).squeeze(2) > 0
        return (share * 4).clamp(max=3).int() + 4 * rival.int()

    def show(self, token: int) -> str:
        return "·" if token >= self.board.size else str(token + 1)


def _cells(line: str) -> str:
    """The cells of a puzzle, row after row."""
    if not line.lstrip().startswith("{"):
        return line
    return "".join(str(digit) for row in json.loads(line)["metadata"]["puzzle"] for digit in row)


# Puzzles before symmetry, of all splits.
STOCK = 24_000


def _data(seed: int, device: torch.device, work: Path, count: int = STOCK) -> SudokuData:
    workers = max(1, min(cores(), count // PUZZLES_A_PROCESS))
    made = stock(NINE, count, work / "puzzles.safetensors", workers=workers)
    return SudokuData(of_split(made, NINE, "train"), NINE, seed, device)


TASK = Task(
    config=Config(NINE.vocabulary, width=128, depth=6, heads=4, sides=NINE.sides, rotary=False, attract=True),
    data=_data,
    wrap=lambda model, device: Sudoku(Denoiser(model), device=device),
)


def categories(canvas: Tensor) -> tuple[str, ...]:
    """How many clues a puzzle has."""
    clues = int((canvas != NINE.mask_id).sum())
    return ("under 24 clues" if clues < 24 else "24 and 25 clues" if clues < 26 else "26 clues and more",)


TRAININGS = MaskLaws(
    orders=("random", "confidence", "entropy", "uncertainty", *LEARNED_ORDERS),
    categories=categories,
    few=partial(_data, count=2 * PUZZLES_A_PROCESS),
)
