"""Train the small hosts on one GPU, each inside a time limit.

    PYTHONPATH=src OUT=results python recipes/gpu.py countdown-random:5 sudoku-progressive:2

Writes to the folder OUT, after every evaluation anew:

    NAME.safetensors   the averaged weights in half precision (≤ 16 MB), with shape, recipe and scores in the header
    results.json       for every training its last scores and its log: loss, gradient norm, learning rate, scores

Checkpoints are kept under --work: a command that is killed goes on from there when it is run again.
`--tiny` runs everything end to end in seconds on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from dprm import Order
from dprm.hosts.denoiser import decode_all, save_weights
from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.verifier import verify
from dprm.hosts.masks import Data, MaskLaw, RandomMasks
from dprm.hosts.pool import ProgressivePool
from dprm.hosts.puma import puzzles, symmetry
from dprm.hosts.puma.board import NINE, SIX, Board
from dprm.hosts.puma.verifier import solved
from dprm.hosts.recipe import Recipe
from dprm.hosts.training import Training
from dprm.hosts.transformer import Config, Transformer

NAMES = (
    "countdown-random",
    "countdown-progressive",
    "sudoku-random",
    "sudoku-progressive",
    "sudoku6-random",
    "sudoku6-progressive",
)
BOARDS = {"sudoku": NINE, "sudoku6": SIX}


@dataclass
class Task:
    """A host's part of a training: shape of the model, data, and how well it decodes."""

    config: Config
    data: Data
    phases: int
    evaluate: Callable[[Transformer, bool], dict[str, float]]


def countdown(arguments: argparse.Namespace, device: torch.device) -> Task:
    """Countdown with 2 to 4 numbers; 5 and 6 only in the final evaluation."""
    tiny = arguments.tiny
    stock = {2: 200, 3: 500, 4: 1_000} if tiny else {2: 100_000, 3: 4_000_000, 4: 8_000_000}
    held_out = {
        n: problems.generate("select", 8 if tiny else 1024 if n > 2 else 256, n, seed=1, distinct=True)
        for n in range(2, 7)
    }

    def evaluate(model: Transformer, thorough: bool) -> dict[str, float]:
        scores = {}
        for n, few in held_out.items():
            if thorough or n in (3, 4):
                listed = few.listed()[: 1024 if thorough else 256]
                for name in ("confidence", "random") if thorough else ("confidence",):
                    tokens = decode_all(model, canvas.blank_canvases(listed), Order(signal=name), canvas.MASK)
                    texts = [canvas.read_response(row) for row in tokens.tolist()]
                    rewards = [verify(*problem, text).reward for problem, text in zip(listed, texts)]
                    scores[f"solved_{n}_{name}"] = sum(reward == 1.0 for reward in rewards) / len(rewards)
        return scores

    config = shaped(Config(canvas.VOCABULARY, sides=canvas.SIDES), arguments)
    return Task(config, problems.CountdownData(stock, arguments.seed, device), 8, evaluate)


def puzzle_stock(board: Board, arguments: argparse.Namespace) -> puzzles.Puzzles:
    """The puzzles, made by all cores at the first call and read from a file afterwards."""
    count = 60 if arguments.tiny else arguments.puzzles
    clues = tuple(arguments.clues) if arguments.clues else puzzles.CLUES[board.size]
    path = arguments.work / f"puzzles-{board.size}-{clues[0]}-{clues[1]}.safetensors"
    start = time.monotonic()
    stock = puzzles.stock(board, count, path, workers=len(os.sched_getaffinity(0)), clues=clues)
    print(f"{count} puzzles of {board.size}x{board.size} in {time.monotonic() - start:.1f} s", flush=True)
    return stock


def sudoku(board: Board, arguments: argparse.Namespace, device: torch.device) -> Task:
    """Sudoku on a single grid; a stock of puzzles is generated once and multiplied by symmetry."""
    stock = puzzle_stock(board, arguments)
    held_out = symmetry.of_split(stock, board, "select")
    blank = held_out.canvases(board)

    def evaluate(model: Transformer, thorough: bool) -> dict[str, float]:
        scores = {}
        few = blank[: 1024 if thorough else 256]
        for name in ("confidence", "random") if thorough else ("confidence",):
            for width in (1, 2, 3) if thorough else (1,):
                tokens = decode_all(model, few, Order(signal=name), board.mask_id, width)
                scores[f"solved_{name}_{width}"] = solved(tokens, few, board).float().mean().item()
        return scores

    config = shaped(Config(board.vocabulary, sides=board.sides, rotary=False, attract=not arguments.plain), arguments)
    data = symmetry.SudokuData(symmetry.of_split(stock, board, "train"), board, arguments.seed, device)
    return Task(config, data, 8, evaluate)


def shaped(config: Config, arguments: argparse.Namespace) -> Config:
    """The host's model in the size that was asked for; heads have 32 dimensions."""
    width, depth = (64, 2) if arguments.tiny else (arguments.width, arguments.depth)
    return replace(config, width=width, depth=depth, heads=width // 32, hidden=3 * width)


def train(name: str, minutes: float, arguments: argparse.Namespace, device: torch.device) -> dict[str, float]:
    """One training, from data to weights."""
    host, law_name = name.split("-")
    start = time.monotonic()
    task = sudoku(BOARDS[host], arguments, device) if host in BOARDS else countdown(arguments, device)
    print(f"{name}: data ready after {time.monotonic() - start:.1f} s", flush=True)
    recipe = Recipe(
        rows=16 if arguments.tiny else arguments.rows,
        minutes=minutes,
        rate=arguments.rate,
        warm=20 if arguments.tiny else 200,
        log_every=10 if arguments.tiny else 100,
        stride=arguments.stride if host.startswith("sudoku") else 0,
        evaluations=2 if arguments.tiny else 8,
        compiled=device.type == "cuda" and not arguments.eager,
        seed=arguments.seed,
    )
    law: MaskLaw = RandomMasks(task.data, recipe.rows, recipe.seed, device)
    if law_name == "progressive":
        law = ProgressivePool(task.data, recipe.rows, Order(), task.phases, recipe.seed, device)
    model = Transformer(task.config, recipe.seed).to(device)
    print(f"{name}: {model.parameter_count():,} parameters", flush=True)
    folder = arguments.work / name

    def keep(average: Transformer, scores: dict[str, float]) -> None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        facts = {"name": name, "recipe": asdict(recipe), "steps": run.step, "scores": scores}
        save_weights(arguments.out / f"{name}.safetensors", average, facts)
        path = arguments.out / "results.json"
        results = json.loads(path.read_text()) if path.is_file() else {}
        log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        results[name] = {"steps": run.step, **scores, "log": log}
        path.write_text(json.dumps(results, indent=1))

    def evaluate(average: Transformer) -> dict[str, float]:
        scores = task.evaluate(average, False)
        keep(average, scores)
        return scores

    run = Training(model, law, recipe, folder, evaluate, title=name)
    run.run()
    scores = task.evaluate(run.average, True)
    keep(run.average, scores)
    print(f"{name}: {json.dumps(scores)}", flush=True)
    return scores


def training(text: str) -> tuple[str, float | None]:
    """NAME or NAME:MINUTES."""
    name, _, minutes = text.partition(":")
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(NAMES)}")
    return name, float(minutes) if minutes else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainings", nargs="+", type=training, help=f"NAME or NAME:MINUTES, of {', '.join(NAMES)}")
    parser.add_argument("--minutes", type=float, default=4.0, help="time limit of trainings that name none")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "results")))
    parser.add_argument("--work", type=Path, default=Path("runs/gpu"), help="checkpoints and puzzles")
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--puzzles", type=int, default=24_000, help="Sudoku: puzzles before symmetry, all splits")
    parser.add_argument("--clues", type=int, nargs=2, help="Sudoku: fewest and most clues (9x9: 26 36)")
    parser.add_argument("--stride", type=int, default=0, help="Sudoku: loss on every such layer; 0: on the last only")
    parser.add_argument("--plain", action="store_true", help="Sudoku: cells of a unit do not attract each other")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eager", action="store_true", help="no torch.compile")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal in seconds")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    # Before the GPU is used, so that all cores can work on it.
    for board in {BOARDS[name.split("-")[0]] for name, _ in arguments.trainings if name.startswith("sudoku")}:
        puzzle_stock(board, arguments)
    for name, minutes in arguments.trainings:
        train(name, minutes or arguments.minutes, arguments, device)


if __name__ == "__main__":
    main()
