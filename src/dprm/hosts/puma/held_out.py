"""Puzzles of one split with a wanted number of clues, without waiting for chance.

The split of a puzzle is a hash of its solution and its clues, and only one puzzle in sixteen belongs to a held-out
split. So a puzzle is dug one clue deeper than wanted: it then has dozens of neighbours with one clue given back, all
with the same single solution, and one of them nearly always belongs to the split. Every split digs grids of its own:
no two share a solution. Shapes: N puzzles, C cells.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.data.splits import SPLITS, in_split
from dprm.hosts.puma.board import Board
from dprm.hosts.puma.puzzles import Puzzles, generate
from dprm.hosts.puma.symmetry import invariant
from dprm.order.noise import mix, mix_rows

# Neighbours tried for a puzzle; one in 22 has none of these in a held-out split and is left out.
NEIGHBOURS = 48
# After so many dug puzzles without one that has few enough clues, there is no use in going on.
PATIENCE = 256


def split_puzzles(
    board: Board, split: str, count: int, clues: tuple[int, int], seed: int = 0, workers: int = 1
) -> Puzzles:
    """`count` puzzles of a split; fewer are the first ones of more.

    Args:
        clues: fewest and most; every puzzle keeps to them, though digging reaches the lowest numbers rarely.
    """
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
    least, most = clues
    if not 1 <= least <= most <= board.cells:
        raise ValueError(f"clues is {clues}: expected (fewest, most) in 1 … {board.cells}")
    name = mix(seed, SPLITS.index(split), 1)
    found: list[Puzzles] = []
    enough = first = 0
    while enough < count:
        # By what the rounds so far have given; before the first, most.
        share = enough / first if enough else 0.8
        size = 64 + int((count - enough) / share)
        dug = generate(board, size, name, workers, first, (least - 1, most - 1))
        few = dug.clue.sum(1) < most
        place = torch.arange(first, first + size)[few]
        found.append(_given_back(dug[few], board, split, mix_rows(place, name)))
        enough += len(found[-1])
        first += size
        if enough == 0 and first >= PATIENCE:
            raise ValueError(f"clues is {clues}: none of {first} puzzles can be dug to fewer than {most}")
    parts = zip(*((part.solution, part.clue) for part in found), strict=True)
    return Puzzles(*(torch.cat(part) for part in parts))[:count]


def _given_back(dug: Puzzles, board: Board, split: str, name: Tensor) -> Puzzles:
    """The first neighbour of every puzzle that belongs to the split; puzzles without one are left out.

    Args:
        name: [N] int64, from which the order of the neighbours is drawn.
    """
    cell = torch.arange(board.cells)
    priority = mix_rows(name.unsqueeze(1) ^ cell, 2).masked_fill(dug.clue, torch.iinfo(torch.int64).max)
    turns = priority.argsort(1)
    clue = dug.clue.clone()
    open_rows = torch.arange(len(dug))
    for turn in range(min(NEIGHBOURS, int((~dug.clue).sum(1).min()) if len(dug) else 0)):
        tried = dug.clue[open_rows].scatter(1, turns[open_rows, turn : turn + 1], True)
        inside = in_split(invariant(Puzzles(dug.solution[open_rows], tried), board), split)
        clue[open_rows[inside]] = tried[inside]
        open_rows = open_rows[~inside]
    settled = torch.ones(len(dug), dtype=torch.bool)
    settled[open_rows] = False
    return Puzzles(dug.solution, clue)[settled]
