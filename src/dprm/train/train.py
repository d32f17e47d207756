"""Train the small model of a host, from data to weights."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

from dprm.decode.counts import Fixed
from dprm.host.decoded import decoded
from dprm.host.device import checked_device
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode
from dprm.order import Gate, Order
from dprm.order.checks import check_count, check_one_of
from dprm.train.denoiser import save_weights
from dprm.train.learner import deployed, learner
from dprm.train.learning import LearningPool
from dprm.train.masks import MaskLaw, RandomMasks
from dprm.train.pool import ProgressivePool
from dprm.train.recipe import Recipe
from dprm.train.task import Task, successes
from dprm.train.training import Training
from dprm.train.transformer import Transformer

# Uniform random masks; masks along confidence order (PUMA); masks along an order that learns from terminal rewards.
LAWS = ("random", "confidence", "dprm")
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
    start: Path | None = None,
) -> dict[str, float]:
    """Train to the end and write the averaged weights to `out`; returns the last scores on the select split.

    The law "dprm" also writes the policy it learned, ready to decode with, to `out` with the ending `.dprm`.

    Args:
        law: one of LAWS.
        work: checkpoints, log and prepared data; a training that was killed goes on from there.
        width, depth: of the model; None: the host's own.
        problems: held-out problems of an evaluation. every: steps between two lessons of a law that learns.
        start: weights to begin with, of a model of the same shape.

    Raises:
        ValueError: before any work, where something cannot be as asked: law, sizes, device, a file that cannot be
            written, a folder that holds another training.
    """
    check_one_of("law", law, LAWS)
    check_count("problems", problems, 1)
    check_count("every", every, 1)
    device = checked_device(device)
    if out.is_dir() or out.suffix == ".dprm":
        raise ValueError(f"out is {out}: expected a file for weights, such as model.safetensors")
    _check_writable("out", out.parent)
    _check_writable("work", work)
    model = task.first(width, depth, recipe.seed).to(device)
    if start is not None:
        task.fill(model, start)
    host = task.wrap(model, device)
    data = task.data(recipe.seed, device, work)
    rows, seed = recipe.rows, recipe.seed
    masks: MaskLaw = RandomMasks(data, rows, seed, device)
    if law == "confidence":
        masks = ProgressivePool(data, rows, Order(), task.phases, seed, device)
    if law == "dprm":
        order = learner(host, TRAINING_GATE)
        masks = LearningPool(data, rows, host, order, task.phases, seed, device, every=every)
    held_out = host.problems("select", problems, seed)

    def scored(
        average: Transformer, widths: tuple[int, ...] = (1,), signals: tuple[str, ...] = ("confidence",)
    ) -> dict[str, float]:
        scores = solved(task.wrap(average, device), held_out, widths, signals)
        if run.step == run.steps and signals == ("confidence",):
            # The last weights are written once, with all their scores: that file says that the training is over.
            return scores
        facts = {"host": host.name, "law": law, "recipe": asdict(recipe), "steps": run.step, "scores": scores}
        save_weights(out, average, facts)
        return scores

    run = Training(model, masks, recipe, work / f"{host.name}-{law}", evaluate=scored, title=f"{host.name} {law}")
    run.run()
    if not run.processes.first:
        return {}
    final = scored(run.average, (1, 2, 3), ("confidence", "random"))
    if task.measured is not None:
        final |= task.measured(task.wrap(run.average, device), held_out)
    if isinstance(masks, LearningPool):
        deployed(masks.order, DECODING_GATE, host=host.name, estimator="training").save(out.with_suffix(".dprm"))
    return final


def solved(host: Host, problems: Problems, widths: tuple[int, ...], signals: tuple[str, ...]) -> dict[str, float]:
    """Share of problems solved under each signal and number of positions a step; of a host that solves nothing, the
    mean terminal reward."""
    ways = {signal: Decode(Order(signal=signal)) for signal in signals}
    solves = any(metric.name == "solved" for metric in host.judged) or not host.preference.weights
    what = "solved" if solves else "reward"
    # A host with a schedule of its own reveals as many as that says.
    scheduled = not isinstance(host.decoding.count, Fixed)
    scores = {}
    for width in (None,) if scheduled else widths:
        posed = host if width is None else host.with_decoding(count=Fixed(width))
        for signal, rollout in decoded(posed, problems, ways, rows=512).items():
            earned = successes(host, rollout.scores).double() if solves else host.reward(rollout.scores)
            scores[f"{what}_{signal}" if width is None else f"{what}_{signal}_{width}"] = float(earned.mean())
    return scores


def _check_writable(name: str, folder: Path) -> None:
    """Raise if no file could be written there at the end of a long training."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{name} cannot be written: {error}") from None
