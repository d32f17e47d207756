"""Sudoku: boards, solver, puzzles with one solution, symmetry, verifier."""

import itertools
import random
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dprm.data.draws import Draws
from dprm.data.splits import SPLITS
from dprm.hosts.puma import puzzles, symmetry
from dprm.hosts.puma.board import NINE, SIX, Board
from dprm.hosts.puma.solver import Solver
from dprm.hosts.puma.verifier import right_units, solved

FOUR = Board(2, 2)
BOARDS = {"4": FOUR, "6": SIX, "9": NINE}


@pytest.fixture(scope="module")
def made():
    return {name: puzzles.generate(board, 30 if name == "9" else 60, seed=1) for name, board in BOARDS.items()}


def all_grids_of_four():
    """All 288 grids of side 4, found without the solver."""
    rows = list(itertools.permutations(range(4)))
    found = []
    for grid in itertools.product(rows, repeat=4):
        columns = all(len({row[c] for row in grid}) == 4 for c in range(4))
        boxes = all(len({grid[r + i][c + j] for i in (0, 1) for j in (0, 1)}) == 4 for r in (0, 2) for c in (0, 2))
        if columns and boxes:
            found.append([digit for row in grid for digit in row])
    return found


def test_there_are_288_grids_of_side_four_and_uniqueness_agrees_with_counting_them():
    grids = all_grids_of_four()
    assert len(grids) == 288
    assert bool(right_units(torch.tensor(grids), FOUR).all())
    rng, solver = random.Random(0), Solver(FOUR)
    for _ in range(200):
        shown = rng.sample(range(16), rng.randint(3, 8))
        grid = [rng.choice(grids)[cell] if cell in shown else -1 for cell in range(16)]
        count = sum(all(digit in (-1, full[cell]) for cell, digit in enumerate(grid)) for full in grids)
        assert solver.is_unique(grid) == (count == 1)
        assert (solver.solve(grid) is None) == (count == 0)


@pytest.mark.parametrize("name", BOARDS)
def test_puzzles_have_one_solution_and_the_wanted_number_of_clues(made, name):
    board, some = BOARDS[name], made[name]
    least, most = puzzles.CLUES[board.size]
    assert bool(solved(some.solution, some.canvases(board), board).all())
    # Digging can end early, with more clues than wanted.
    counts = some.clue.sum(1)
    assert int(counts.min()) >= least
    assert float((counts <= most).float().mean()) > 0.9
    solver = Solver(board)
    for canvas in some.canvases(board)[:10].tolist():
        assert solver.is_unique([-1 if token == board.mask_id else token for token in canvas])


def test_a_puzzle_depends_on_its_number_only():
    some = puzzles.generate(SIX, 12, seed=3)
    assert torch.equal(puzzles.generate(SIX, 5, seed=3, first=7).solution, some.solution[7:])
    assert torch.equal(puzzles.generate(SIX, 12, seed=3, workers=2).clue, some.clue)


@pytest.mark.parametrize("name", BOARDS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_images_are_valid_keep_their_clues_and_share_their_split(made, name, seed):
    board, some = BOARDS[name], made[name]
    image = symmetry.scramble(some, board, Draws(seed))
    assert bool(solved(image.solution, image.canvases(board), board).all())
    assert torch.equal(image.clue.sum(1), some.clue.sum(1))
    assert torch.equal(symmetry.invariant(image, board), symmetry.invariant(some, board))


def test_images_keep_uniqueness(made):
    solver = Solver(SIX)
    for canvas in symmetry.scramble(made["6"], SIX, Draws(9)).canvases(SIX).tolist():
        assert solver.is_unique([-1 if token == SIX.mask_id else token for token in canvas])


def test_every_cell_can_come_to_every_place_and_both_orientations_occur():
    marked = torch.zeros(4_000, 81, dtype=torch.bool)
    marked[:, 0] = marked[:, 1] = True  # Two neighbours in a row.
    one = puzzles.Puzzles(torch.zeros(4_000, 81, dtype=torch.int64), marked)
    place = symmetry.scramble(one, NINE, Draws(1)).clue.nonzero()[:, 1].view(-1, 2)
    assert len(place.unique()) == 81
    in_a_row = float((place[:, 0] // 9 == place[:, 1] // 9).float().mean())
    assert 0.45 < in_a_row < 0.55


def test_different_puzzles_have_different_invariants_and_splits_share_none(made):
    some = made["9"]
    assert len(symmetry.invariant(some, NINE).unique()) == len(some)
    parts = [symmetry.of_split(some, NINE, split) for split in SPLITS]
    assert sum(map(len, parts)) == len(some)
    keys = [
        set(symmetry.invariant(symmetry.scramble(part, NINE, Draws(2)), NINE).tolist()) for part in parts if len(part)
    ]
    assert len(set.union(*keys)) == sum(map(len, keys))


def test_training_sequences_are_a_function_of_the_step(made):
    one, two = (symmetry.SudokuData(made["9"], NINE, seed=4) for _ in range(2))
    one.batch(0, 8)
    clean, answer = one.batch(5, 8)
    assert torch.equal(clean, two.batch(5, 8)[0])
    assert bool(right_units(clean, NINE).all())
    assert bool((answer.sum(1) >= 81 - 40).all())


@pytest.mark.parametrize("name", BOARDS)
def test_any_single_change_of_a_solution_is_rejected(made, name):
    board, some = BOARDS[name], made[name]
    rows, cells = some.solution.shape
    cell = Draws(1).below(cells, rows, 40)
    shift = 1 + Draws(2).below(board.size - 1, rows, 40)
    for k in range(40):
        changed = some.solution.clone()
        place = cell[:, k : k + 1]
        changed.scatter_(1, place, (changed.gather(1, place) + shift[:, k : k + 1]) % board.size)
        assert not bool(solved(changed, some.canvases(board), board).any())


def test_a_right_grid_for_another_puzzle_is_rejected(made):
    some = made["9"]
    other = symmetry.scramble(some, NINE, Draws(3)).solution
    assert bool(right_units(other, NINE).all())
    assert not bool(solved(other, some.canvases(NINE), NINE).any())


def test_one_wrong_clue_is_enough_to_be_rejected():
    grid = torch.tensor(all_grids_of_four()[:2])
    puzzle = torch.full((1, 16), FOUR.mask_id)
    differ = int((grid[0] != grid[1]).nonzero()[0])
    agree = int((grid[0] == grid[1]).nonzero()[0])
    puzzle[0, agree] = grid[0, agree]
    assert bool(solved(grid[1:], puzzle, FOUR))
    puzzle[0, differ] = grid[0, differ]
    assert not bool(solved(grid[1:], puzzle, FOUR))


def test_an_unfinished_grid_is_rejected(made):
    canvases = made["9"].canvases(NINE)
    assert not bool(solved(canvases, canvases, NINE).any())


def test_lines_are_read_and_written(made):
    canvas = made["9"].canvases(NINE)[0]
    line = NINE.write(canvas)
    assert torch.equal(NINE.read(line), canvas)
    assert torch.equal(NINE.read(line.replace(".", "0") + "\n"), canvas)


@pytest.mark.parametrize(
    ("line", "named"),
    [("1" * 80, "80 characters"), ("7" * 36, "36 characters"), ("1" * 80 + "x", "character 81 is 'x'")],
)
def test_lines_that_are_no_puzzle_are_named(line, named):
    with pytest.raises(ValueError, match=named):
        NINE.read(line)


def test_a_digit_too_large_for_the_board_is_named():
    with pytest.raises(ValueError, match="character 1 is '7'"):
        SIX.read("7" + "." * 35)


def test_fewer_clues_can_be_asked_for():
    counts = puzzles.generate(NINE, 20, clues=(23, 25)).clue.sum(1)
    assert 23 <= int(counts.min()) <= 25
    with pytest.raises(ValueError, match="clues is"):
        puzzles.generate(NINE, 1, clues=(30, 20))


def test_a_stock_is_extended_and_not_made_again(tmp_path):
    path = tmp_path / "stock.safetensors"
    few = puzzles.stock(SIX, 6, path, seed=2)
    more = puzzles.stock(SIX, 10, path, seed=2)
    assert torch.equal(more.solution[:6], few.solution)
    assert torch.equal(more.solution, puzzles.generate(SIX, 10, seed=2).solution)
    assert torch.equal(puzzles.stock(SIX, 4, path, seed=2).clue, few.clue[:4])
    with pytest.raises(ValueError, match="holds puzzles of"):
        puzzles.stock(SIX, 4, path, seed=3)


@pytest.mark.slow
def test_a_script_without_a_main_guard_gets_its_puzzles_too(tmp_path):
    """Its processes cannot start: each would run the script from the beginning."""
    script = tmp_path / "mine.py"
    script.write_text(
        "from dprm.hosts.puma import puzzles\n"
        "from dprm.hosts.puma.board import SIX\n"
        "print(puzzles.generate(SIX, 3, seed=3, workers=2).clue.sum().item())\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == int(puzzles.generate(SIX, 3, seed=3).clue.sum())
