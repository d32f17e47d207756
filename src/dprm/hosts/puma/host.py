"""The Sudoku host: a model, its puzzles, its verifier, and the cells of its decisions."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from dprm.data.draws import row_hash
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.difficulty import whole_range
from dprm.host.host import Host, Problems
from dprm.host.metrics import Metric
from dprm.host.weights import sha256
from dprm.hosts.puma.board import NINE, Board
from dprm.hosts.puma.held_out import split_puzzles
from dprm.hosts.puma.puzzles import CLUES, stock
from dprm.hosts.puma.symmetry import SudokuData, of_split
from dprm.hosts.puma.verifier import solved
from dprm.order import Reading
from dprm.train.denoiser import Denoiser, load_weights
from dprm.train.task import Task
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
        other.variant = difficulty
        return other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        workers = max(1, min(len(os.sched_getaffinity(0)), count // PUZZLES_A_PROCESS))
        made = split_puzzles(self.board, split, count, self.clues, seed, workers)
        return self.posed(made.canvases(self.board))

    def posed(self, canvases: Tensor) -> Problems:
        """Problems of given grids [N,C], the mask where blank."""
        return Problems(canvases.to(self.device), row_hash(canvases).to(self.device), list(canvases))

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """Lines of 81 characters with `.` or `0` for blanks, or instances of reasoning-gym's sudoku as JSON."""
        grids, left_out = [], []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip():
                try:
                    grids.append(self.board.read(_cells(line)))
                except (ValueError, TypeError, KeyError) as error:
                    left_out.append(f"line {number}: {error}")
        empty = torch.zeros(0, self.board.cells, dtype=torch.int64)
        return self.posed(torch.stack(grids) if grids else empty), left_out

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


def load(path: Path, device: torch.device | str = "cpu") -> Sudoku:
    """The host with the model of a weights file."""
    model, _ = load_weights(path, device)
    return Sudoku(Denoiser(model), device=device, weights=sha256(path)[:16])


# Puzzles before symmetry, of all splits.
STOCK = 24_000


def _data(seed: int, device: torch.device, work: Path) -> SudokuData:
    kept = work / "puzzles.safetensors"
    made = stock(NINE, STOCK, kept, workers=len(os.sched_getaffinity(0)))
    return SudokuData(of_split(made, NINE, "train"), NINE, seed, device)


TASK = Task(
    config=Config(NINE.vocabulary, width=128, depth=6, heads=4, sides=NINE.sides, rotary=False, attract=True),
    data=_data,
    wrap=lambda model, device: Sudoku(Denoiser(model), device=device),
)
