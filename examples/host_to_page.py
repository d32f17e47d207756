"""A host from data to page, 6×6 Sudoku: python examples/host_to_page.py [training steps] [model calls of the fit]"""

import sys
from pathlib import Path

import dprm
from dprm.decode import Fixed
from dprm.hosts.puma.board import SIX
from dprm.hosts.puma.host import Sudoku
from dprm.hosts.puma.puzzles import stock
from dprm.hosts.puma.symmetry import SudokuData, of_split
from dprm.train.denoiser import Denoiser
from dprm.train.masks import RandomMasks
from dprm.train.recipe import Recipe
from dprm.train.training import Training
from dprm.train.transformer import Config, Transformer

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
CALLS = int(sys.argv[2]) if len(sys.argv) > 2 else 4_000
PROBLEMS = min(64, CALLS // 20)  # To choose on, and to test on.


def main(folder: Path) -> None:
    # Data: puzzles with exactly one solution, kept in a file; only those of the train split are trained on.
    puzzles = stock(SIX, min(2_000, 8 * STEPS + 64), folder / "puzzles.safetensors")
    data = SudokuData(of_split(puzzles, SIX, "train"), SIX)

    # A small model. Stopped with Ctrl-C, the same command goes on from its checkpoint.
    config = Config(SIX.vocabulary, width=32, depth=2, heads=2, sides=SIX.sides, rotary=False, attract=True)
    recipe = Recipe(rows=16, steps=STEPS, warm=20, rate=2e-3)
    training = Training(Transformer(config), RandomMasks(data, recipe.rows), recipe, folder / "training")
    training.run()

    # The host: this model, its problems, its verifier. Eight cells at once: which go together is what order decides.
    host = Sudoku(Denoiser(training.average), SIX, weights="example").with_decoding(count=Fixed(8))

    # An order, learned at a price in model calls; compared on test problems, with controls; a verdict.
    learned = dprm.learn(host, calls=CALLS, select=PROBLEMS, test=PROBLEMS, folder=folder / "fit")
    learned.policy.save(folder / "sudoku.dprm")
    learned.card.save(folder / "sudoku.json")
    print(*learned.account.lines(), sep="\n")
    print("verdict:", learned.card.verdict["verdict"], "because", learned.card.verdict["reason"])

    # The page: one file, with a replay.
    from dprm.report.page import page
    from dprm.report.runs import read_run

    runs = [read_run(folder / name) for name in ("sudoku.json", "sudoku.dprm")]
    (folder / "sudoku.html").write_text(page(runs, "Sudoku, 6×6"))
    print("page:", folder / "sudoku.html")


if __name__ == "__main__":
    main(Path("runs/example"))
