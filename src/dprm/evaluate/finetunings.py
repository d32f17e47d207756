"""Fine-tunings of one host as a comparison: every arm decodes as it was trained, and its seeds are averaged.

    arm                       its weights decode by
    native, start             the host's own order; start are the weights that all began with
    confidence-progressive    confidence
    uncertainty-progressive   1 − max p
    dprm, dprm-random, …      the order that the training learned; of the fewest phases also with one thing taken away

A decode seed of the card is a fine-tuning seed: it has weights of its own. Samples are independent, so each is
resampled by itself inside a seed, metrics of the set are worked out again in every resample, and seeds are averaged,
not pooled. The reference of the card is native. Its notes hold more: `contrasts`, every learned order against
confidence and its own controls in all metrics, and `phases`, how many cells of its table are ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dprm.decode.counts import Fixed
from dprm.decode.loop import Model
from dprm.evaluate.ablations import ABLATIONS, COUNT_ONLY, GATE_ONLY, NO_SHORTLIST, SHUFFLED, ablation_name
from dprm.evaluate.arms import Contender
from dprm.evaluate.bootstrap import difference_interval
from dprm.evaluate.compare import Comparison, compare
from dprm.evaluate.diagnostics import stored_coverage
from dprm.evaluate.ledger import look
from dprm.evaluate.measure import set_estimates
from dprm.evaluate.verdict import CHOOSING
from dprm.host.device import checked_device
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode, Rollout, Way
from dprm.host.weights import sha256
from dprm.order import Order, Policy
from dprm.order.files import claim
from dprm.train.denoiser import Denoiser
from dprm.train.finetuning import CONFIDENCE, NATIVE, UNCERTAINTY, FineTunings
from dprm.train.parallel import processes
from dprm.train.task import Task
from dprm.train.trainings import START, Trained

# What is taken away from a learned order on its own weights. A shortlist alone is "gate only".
CONTROLS = (SHUFFLED, GATE_ONLY, COUNT_ONLY, NO_SHORTLIST)
_SIGNALS = {CONFIDENCE: "confidence", UNCERTAINTY: "uncertainty"}


@dataclass(frozen=True)
class Tuned:
    """The way: answer with the weights of a seed.

    Attributes:
        task, model: the host's part of a training, and what is filled with the weights.
        weights, ways: by seed.
    """

    task: Task
    model: Denoiser
    weights: Mapping[int, Path]
    ways: Mapping[int, Way]

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """With its own model: that of the host stays as it is, and may be what the answers are judged by."""
        self.task.fill(self.model.model, self.weights[seed])
        return self.ways[seed].answer(host, problems, seed, self.model)

    def spec(self) -> Any:
        return ["tuned", [[seed, sha256(self.weights[seed]), way.spec()] for seed, way in self.ways.items()]]


def finetunings(
    name: str,
    task: Task,
    trainings: FineTunings,
    weights: Mapping[str, Path],
    *,
    limit: int = 640,
    split: str = "select",
    seed: int = 0,
    seeds: int = 1,
    rows: int = 64,
    resamples: int = 5000,
    device: torch.device | str = "cpu",
    folder: Path,
    command: str = "",
    on_batch: Callable[[str, int], None] | None = None,
) -> Comparison | None:
    """Fine-tune what has no weights yet, `seeds` times, decode with all of them, and compare.

    Args:
        name: of the host. task, trainings: its own. weights: the start.
        limit: answers of every arm and seed. folder: keeps trainings, `seed-0` and so on, and finished batches.

    Processes that share the trainings (see `train.parallel`) all call this; the first decodes, the others get None.
    """
    device = checked_device(device)
    numbers, shared = range(seed, seed + seeds), processes()
    if len(trainings.widths) != 1:
        raise ValueError(f"widths is {trainings.widths}: fine-tunings are decoded at one number of positions a step")
    for each in numbers:
        trainings.check(name, task, weights, folder / f"seed-{each}", each)
    if shared.first:
        claim(folder)
    shared.wait()
    trained = {each: trainings.trained(name, task, weights, folder / f"seed-{each}", each, device) for each in numbers}
    if not shared.first:
        return None
    start = trained[seed][START].path
    host, model = task.load(start, device), Denoiser(task.load(start, device).model().model)  # type: ignore[attr-defined]
    if trainings.fast:
        model.compile()
        host.model().compile()  # type: ignore[attr-defined]
    host = host.with_decoding(count=Fixed(trainings.widths[0]))
    if trainings.temperature is not None:
        host = host.with_decoding(temperature=trainings.temperature)
    problems = host.problems(split, limit, seed)
    policies: dict[str, dict[int, Policy]] = {}
    for each, arms in trained.items():
        for arm, made in arms.items():
            if made.policy is not None:
                policies.setdefault(arm, {})[each] = Policy.load(made.policy)
    fewest = [arm for arm in policies if trainings.arms[arm] == min(trainings.phases)]
    contenders = _contenders(host, task, model, trained, policies, fewest)
    notes: dict[str, Any] = {
        "trainings": {each: {arm: t.facts for arm, t in of.items()} for each, of in trained.items()}
    }
    if split not in CHOOSING:
        notes["looks"] = {arm: _looks(arm, trained, policies, problems, command) for arm in policies}
    how: dict[str, Any] = {"split": split, "seeds": numbers, "rows": rows, "resamples": resamples, "notes": notes}
    comparison = compare(
        host, problems, contenders, **how, folder=folder / "decoded", command=command, on_batch=on_batch
    )
    comparison.card.notes["contrasts"] = _contrasts(host, problems, comparison, list(policies))
    comparison.card.notes["phases"] = {arm: _phases(list(of_seed.values())) for arm, of_seed in policies.items()}
    for arm, of_seed in policies.items():
        comparison.card.arms[arm].policy = of_seed[seed].digest
    return comparison


def _contenders(
    host: Host,
    task: Task,
    model: Denoiser,
    trained: Mapping[int, Mapping[str, Trained]],
    policies: Mapping[str, Mapping[int, Policy]],
    controlled: Sequence[str],
) -> dict[str, Contender]:
    """All arms by name, the reference first; those that are controlled have CONTROLS beside them."""

    def tuned(arm: str, ways: Mapping[int, Way]) -> Tuned:
        return Tuned(task, model, {each: arms[arm].path for each, arms in trained.items()}, ways)

    arms = {}
    for arm in sorted(next(iter(trained.values())), key=lambda arm: arm != NATIVE):
        if arm not in policies:
            order = Order(signal=_SIGNALS[arm]) if arm in _SIGNALS else None
            arms[arm] = Contender(tuned(arm, {each: Decode(order) for each in trained}))
            continue
        orders = {each: Order.from_policy(policy) for each, policy in policies[arm].items()}
        fit = next(iter(policies[arm].values())).notes
        arms[arm] = Contender(tuned(arm, {each: Decode(order) for each, order in orders.items()}), fit)
        for control in CONTROLS if arm in controlled else ():
            without = {each: ABLATIONS[control](order, each) for each, order in orders.items()}
            ways = {each: Decode(order) for each, order in without.items() if order is not None}
            if len(ways) == len(trained):
                arms[ablation_name(arm, control)] = Contender(tuned(arm, ways), ablates=arm)
    return arms | {name: Contender(tuned(NATIVE, dict.fromkeys(trained, way))) for name, way in host.ways.items()}


def _looks(
    arm: str,
    trained: Mapping[int, Mapping[str, Trained]],
    policies: Mapping[str, Mapping[int, Policy]],
    problems: Problems,
    command: str,
) -> int:
    """How often any of the policies of an arm was looked at with other problems of the split."""
    counts = []
    for each, policy in policies[arm].items():
        path = trained[each][arm].policy
        assert path is not None
        counts.append(look(path, policy.digest, problems.digest, command))
    return max(counts)


def _contrasts(host: Host, problems: Problems, made: Comparison, learned: Sequence[str]) -> list[dict[str, Any]]:
    """Learned orders against confidence and against their own controls: the difference in every metric."""
    entries = []
    for arm in learned:
        controls = [CONFIDENCE, *(name for name, other in made.card.arms.items() if other.ablates == arm)]
        for control in controls:
            own, other = made.rollouts[arm], made.rollouts[control]
            told = {}
            for column, metric in enumerate(host.judged):
                means = (torch.stack([run.scores[:, column] for run in runs]).double().mean(0) for runs in (own, other))
                interval = difference_interval(
                    *means, paired=host.paired, resamples=made.card.resamples, seed=made.card.seeds[0]
                )
                told[metric.name] = interval._asdict()
            for name, each in set_estimates(host, problems, own, other).items():
                told[name] = {"estimate": each.delta, "low": each.delta_low, "high": each.delta_high}
            entries.append({"treated": arm, "control": control, "metrics": told})
    return entries


def _phases(policies: Sequence[Policy]) -> dict[str, float]:
    """The phases and cells of a table, and how many cells are ready, on average over seeds."""
    stored = [stored_coverage(Order.from_policy(policy))["stored"] for policy in policies]
    cells = stored[0]["cells"]
    ready = sum(each["ready"] for each in stored) / len(stored) * cells
    return {"phases": policies[0].cells.shape[0], "cells": cells, "ready": round(ready, 2)}
