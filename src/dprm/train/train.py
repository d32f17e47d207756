"""Train the small model of a host, from data to weights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch

from dprm.decode.counts import Fixed
from dprm.host.decoded import decoded
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode
from dprm.order import Gate, Order
from dprm.train.denoiser import save_weights
from dprm.train.learner import deployed, learner
from dprm.train.learning import LearningPool
from dprm.train.masks import MaskLaw, RandomMasks
from dprm.train.pool import ProgressivePool
from dprm.train.recipe import Recipe
from dprm.train.task import Task, successes
from dprm.train.training import Training
from dprm.train.transformer import Transformer

LAWS = {
    "random": "uniform random masks",
    "confidence": "masks along confidence order (PUMA)",
    "dprm": "masks along an order that learns from terminal rewards",
}
# Of the learning law, in lessons; and of what it learned, when it decodes.
TRAINING_GATE, DECODING_GATE = Gate(4, 16, 64), Gate(0, 16, 16)


def train(
    task: Task,
    law: str,
    recipe: Recipe,
    *,
    out: Path,
    work: Path,
    device: torch.device | str = "cpu",
    width: int | None = None,
    depth: int | None = None,
    problems: int = 256,
    every: int = 100,
) -> dict[str, float]:
    """Train to the end and write the averaged weights to `out`; returns the last scores on the select split.

    The law "dprm" also writes the policy it learned, ready to decode with, to `out` with the ending `.dprm`.

    Args:
        law: one of LAWS.
        work: checkpoints, log and prepared data; a training that was killed goes on from there.
        width, depth: of the model; None: the host's own.
        problems: held-out problems of an evaluation. every: steps between two lessons of a law that learns.
    """
    if law not in LAWS:
        raise ValueError(f"law is {law!r}: expected one of {', '.join(LAWS)}")
    device = torch.device(device)
    data = task.data(recipe.seed, device, work)
    model = Transformer(task.shaped(width, depth), recipe.seed).to(device)
    host = task.wrap(model, device)
    shared = {"phases": task.phases, "seed": recipe.seed, "device": device}
    masks: MaskLaw = RandomMasks(data, recipe.rows, recipe.seed, device)
    if law == "confidence":
        masks = ProgressivePool(data, recipe.rows, Order(), **shared)
    if law == "dprm":
        masks = LearningPool(data, recipe.rows, host, learner(host, TRAINING_GATE), **shared, every=every)
    held_out = host.problems("select", problems, recipe.seed)

    def evaluate(average: Transformer) -> dict[str, float]:
        scores = solved(task.wrap(average, device), held_out, widths=(1,), signals=("confidence",))
        keep(average, scores)
        return scores

    def keep(average: Transformer, scores: dict[str, float]) -> None:
        facts = {"host": host.name, "law": law, "recipe": asdict(recipe), "steps": run.step, "scores": scores}
        save_weights(out, average, facts)

    run = Training(model, masks, recipe, work / f"{host.name}-{law}", evaluate=evaluate, title=f"{host.name} {law}")
    run.run()
    final = solved(task.wrap(run.average, device), held_out, widths=(1, 2, 3), signals=("confidence", "random"))
    keep(run.average, final)
    if isinstance(masks, LearningPool):
        deployed(masks.order, DECODING_GATE, host=host.name, estimator="training").save(out.with_suffix(".dprm"))
    return final


def solved(host: Host, problems: Problems, widths: tuple[int, ...], signals: tuple[str, ...]) -> dict[str, float]:
    """Share of problems solved under each signal and number of positions a step."""
    ways = {signal: Decode(Order(signal=signal)) for signal in signals}
    scores = {}
    for width in widths:
        rollouts = decoded(host.with_decoding(count=Fixed(width)), problems, ways, rows=512)
        for signal, rollout in rollouts.items():
            scores[f"solved_{signal}_{width}"] = float(successes(host, rollout.scores).double().mean())
    return scores
