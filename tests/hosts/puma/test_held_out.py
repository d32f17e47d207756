"""Puzzles of a split with a wanted number of clues."""

import pytest
import torch

from dprm.data.splits import SPLITS, in_split
from dprm.hosts.puma.board import NINE, SIX
from dprm.hosts.puma.held_out import split_puzzles
from dprm.hosts.puma.solver import Solver
from dprm.hosts.puma.symmetry import invariant
from dprm.hosts.puma.verifier import solved


@pytest.mark.parametrize("split", SPLITS)
def test_every_puzzle_belongs_to_its_split_has_the_clues_asked_for_and_one_solution(split):
    made = split_puzzles(SIX, split, 60, (11, 13), seed=2)
    assert len(made) == 60
    assert bool(in_split(invariant(made, SIX), split).all())
    assert set(made.clue.sum(1).tolist()) <= {11, 12, 13}
    assert bool(solved(made.solution, made.canvases(SIX), SIX).all())
    solver = Solver(SIX)
    for canvas in made.canvases(SIX).tolist():
        assert solver.is_unique([-1 if token == SIX.mask_id else token for token in canvas])


def test_hard_puzzles_of_nine_can_be_had():
    made = split_puzzles(NINE, "test", 6, (22, 25))
    assert 22 <= int(made.clue.sum(1).min()) <= int(made.clue.sum(1).max()) <= 25
    assert bool(in_split(invariant(made, NINE), "test").all())


def test_splits_and_seeds_share_no_solution():
    parts = [split_puzzles(SIX, split, 40, (10, 16), seed).solution for split in SPLITS for seed in (0, 1)]
    assert len(torch.cat(parts).unique(dim=0)) == 320


def test_fewer_are_the_first_of_more():
    some, more = (split_puzzles(SIX, "fit", count, (10, 16), seed=3) for count in (5, 150))
    assert torch.equal(some.clue, more.clue[:5])
    assert torch.equal(some.solution, more.solution[:5])


@pytest.mark.parametrize(
    ("clues", "split", "message"),
    [
        ((0, 5), "test", r"clues is \(0, 5\): expected \(fewest, most\) in 1 … 36"),
        ((9, 8), "test", r"clues is \(9, 8\)"),
        ((2, 4), "test", r"clues is \(2, 4\): none of [0-9]+ puzzles can be dug to fewer than 4"),
        ((12, 14), "exam", "split is 'exam': expected one of train, fit, select, test"),
    ],
)
def test_what_cannot_be_had_is_named(clues, split, message):
    with pytest.raises(ValueError, match=message):
        split_puzzles(SIX, split, 2, clues)
