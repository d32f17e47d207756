"""Train a host's small model: `python -m dprm.train.train dmpo --law random --minutes 4`, or `dprm train`.

The module needs torch, numpy and safetensors only, so that it also runs on a machine that is there for training.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout, batches
from dprm.order import Order
from dprm.train.denoiser import save_weights
from dprm.train.learning import LearningPool
from dprm.train.masks import MaskLaw, RandomMasks
from dprm.train.pool import ProgressivePool
from dprm.train.recipe import Recipe
from dprm.train.task import task_of
from dprm.train.training import Training
from dprm.train.transformer import Transformer

LAWS = {
    "random": "uniform random masks",
    "confidence": "masks along confidence order (PUMA)",
    "dprm": "masks along an order that learns from terminal rewards",
}


def train(
    host: str,
    law: str,
    recipe: Recipe,
    *,
    out: Path,
    work: Path,
    device: torch.device | str = "cpu",
    width: int | None = None,
    depth: int | None = None,
    problems: int = 256,
) -> dict[str, float]:
    """Train to the end and write the averaged weights to `out`; returns the last scores on the select split.

    Args:
        work: checkpoints, log and prepared data; a training that was killed goes on from there.
        problems: held-out problems of an evaluation.
    """
    if law not in LAWS:
        raise ValueError(f"law is {law!r}: expected one of {', '.join(LAWS)}")
    device = torch.device(device)
    task = task_of(host)
    data = task.data(recipe.seed, device, work)
    model = Transformer(task.shaped(width, depth), recipe.seed).to(device)
    teach: Callable[[Transformer, int], float] | None = None
    masks: MaskLaw = RandomMasks(data, recipe.rows, recipe.seed, device)
    if law == "confidence":
        masks = ProgressivePool(data, recipe.rows, Order(), task.phases, recipe.seed, device)
    if law == "dprm":
        learning = LearningPool(data, recipe.rows, task.wrap(model, device), task.phases, recipe.seed, device)
        masks = learning

        def lesson(average: Transformer, step: int) -> float:
            return learning.lesson(task.wrap(average, device), step)

        teach = lesson
    held_out = task.wrap(model, device).problems("select", problems, recipe.seed)

    def evaluate(average: Transformer) -> dict[str, float]:
        scores = solved(task.wrap(average, device), held_out, widths=(1,), signals=("confidence",))
        keep(average, scores)
        return scores

    def keep(average: Transformer, scores: dict[str, float]) -> None:
        facts = {"host": host, "law": law, "recipe": asdict(recipe), "steps": run.step, "scores": scores}
        save_weights(out, average, facts)

    run = Training(model, masks, recipe, work / f"{host}-{law}", evaluate, f"{host} {law}", teach)
    run.run()
    final = solved(task.wrap(run.average, device), held_out, widths=(1, 2, 3), signals=("confidence", "random"))
    keep(run.average, final)
    return final


def solved(host: Host, problems: Problems, widths: tuple[int, ...], signals: tuple[str, ...]) -> dict[str, float]:
    """Share of problems solved under each signal and width."""
    scores = {}
    for signal in signals:
        for width in widths:
            parts = [part for _, part in batches(host, problems, Order(signal=signal), budget=width, rows=512)]
            rollout = Rollout.joined(parts)
            scores[f"solved_{signal}_{width}"] = float((rollout.reward >= host.solved_at).double().mean())
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dprm.train.train", description="Train a host's small model.")
    parser.add_argument("host")
    parser.add_argument("--law", default="random", choices=LAWS, help="which positions training canvases mask")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--minutes", type=float, help="time limit; the learning rate ends with it")
    length.add_argument("--steps", type=int, help="number of steps; equal for arms that are compared")
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--width", type=int)
    parser.add_argument("--depth", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, default=256, help="held-out problems of an evaluation")
    parser.add_argument("--eager", action="store_true", help="no torch.compile on a GPU")
    parser.add_argument("--out", type=Path, help="weights file; default OUT/HOST-LAW.safetensors, OUT being runs")
    parser.add_argument("--work", type=Path, default=Path("runs"))
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    recipe = Recipe(
        rows=given.rows,
        steps=given.steps,
        minutes=given.minutes,
        rate=given.rate,
        seed=given.seed,
        compiled=device.type == "cuda" and not given.eager,
    )
    torch.set_float32_matmul_precision("high")
    out = given.out or Path(os.environ.get("OUT", "runs")) / f"{given.host}-{given.law}.safetensors"
    scores = train(
        given.host,
        given.law,
        recipe,
        out=out,
        work=given.work,
        device=device,
        width=given.width,
        depth=given.depth,
        problems=given.problems,
    )
    print(json.dumps({"weights": str(out), **scores}))


if __name__ == "__main__":
    main()
