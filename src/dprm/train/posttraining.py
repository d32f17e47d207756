"""Post-training with WDCE on the model's own rollouts, in three arms from one start.

    arm                       rollouts by                              canvases hide
    random                    the host's order                         at random
    confidence-progressive    the host's order                         what that order would reveal later
    dprm-progressive          it, corrected by learned values          what that order would reveal later
    dprm-letter               the host's order                         what an order learned under way left (`letter`)

The arms make the same number of updates on the same prompts. `dprm-progressive` draws shortlists from its gate's T_warm
on and learns from the terminal rewards of the very rollouts it ordered; `dprm-letter` is Algorithm 2 of the paper as it
stands there. The first of them comes first, being the dearest: where a time
limit is given, the updates that fit into it are those of all others.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dprm.decode.counts import Fixed
from dprm.host.decoded import decoded
from dprm.host.host import Host
from dprm.host.rollout import Decode
from dprm.order import Gate, Order
from dprm.order.checks import check_number
from dprm.train import checkpoint
from dprm.train.denoiser import load_weights, save_weights
from dprm.train.learner import deployed, learner
from dprm.train.letter import Letter
from dprm.train.parallel import processes
from dprm.train.recipe import Recipe
from dprm.train.rollouts import RolloutPlan, Rollouts
from dprm.train.task import Task, successes
from dprm.train.training import Training
from dprm.train.trainings import START, FromStart, Trained
from dprm.train.transformer import Transformer
from dprm.train.wdce import Wdce

DPRM = "dprm-progressive"
LETTER = "dprm-letter"
ARMS = ("random", "confidence-progressive", LETTER, DPRM)
# The arms that learn an order.
LEARNING = (LETTER, DPRM)
# The gate opens from a tenth to four tenths of the refreshes, as in the paper; where their number is not known at the
# start, between these.
WARM, SWITCH = 0.1, 0.4
UNKNOWN = (40, 160)
# Base orders, by number: the host's own, and others.
BASES = (None, "random", "entropy", "margin", "uncertainty")


@dataclass(frozen=True, kw_only=True)
class PostTrainings(FromStart):
    """The arms, and the start.

    Attributes:
        difficulty: of the prompts; None: the host as it is. stock: how many training problems they are drawn from.
        minutes: time limit of the first arm; 0: none, `steps` counts updates.
        prompts, generations: of a refresh, and rollouts of each. reuse, bounds, sync: see `RolloutPlan`.
        rate, average: peak learning rate, decay of the weight average. negative: λ of the objective.
        width, heat: positions a step and temperature of rollouts.
        beta, ready: of the learned order: β, and the evidence that a cell needs. begin, open: T_warm and T_switch as
            shares of the refreshes (of the updates, to the letter).
        base: the signal of all rollouts and of the learned order: a number of `BASES`.
        checked: problems of the evaluations under way.
    """

    steps: int | None = 400
    difficulty: str | None = None
    stock: int = 16_000
    minutes: float = 0.0
    prompts: int = 32
    generations: int = 16
    reuse: int = 8
    bounds: int = 4
    sync: int = 8
    rate: float = 1e-5
    average: float = 0.99
    negative: float = 0.7
    width: int = 2
    heat: float = 1.0
    beta: float = 1.0
    begin: float = WARM
    open: float = SWITCH
    ready: float = 128.0
    base: int = 0
    checked: int = 128

    SETTINGS = (
        *("stock", "minutes", "prompts", "generations", "reuse", "bounds", "sync"),
        *("rate", "average", "negative", "width", "heat", "checked"),
        *("beta", "begin", "open", "ready", "base"),
    )

    def rehearsal(self) -> PostTrainings:
        few = replace(self, prompts=2, generations=4, stock=20, ready=8.0, bounds=1, checked=4)
        return replace(few, steps=10, minutes=0.0, tiny=32, samples=4)

    def plan(self, seed: int) -> RolloutPlan:
        """How rollouts are made and used."""
        same = {name: getattr(self, name) for name in ("prompts", "generations", "reuse", "bounds", "sync")}
        return RolloutPlan(**same, seed=seed)

    def recipe(self, seed: int, steps: int | None) -> Recipe:
        """The optimiser's numbers, for so many updates or for the time limit."""
        plan = self.plan(seed)
        return Recipe(
            rows=plan.prompts * plan.generations * plan.replicates,
            steps=steps,
            minutes=self.minutes if steps is None else None,
            rate=self.rate,
            # Whole refreshes, so that the speed measured meanwhile is that of the whole run.
            warm=6 * plan.reuse,
            decay=0.0,
            average=self.average,
            log_every=plan.reuse,
            evaluations=8,
            compiled=self.fast,
            half=self.fast,
            seed=seed,
        )

    def check(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> None:
        self.recipe(seed, self._updates)
        Wdce(negative=self.negative)
        check_number("beta", self.beta, 0, open_low=True)
        check_number("open", self.open, check_number("begin", self.begin, 0, 1), 1)
        if not 0 <= self.base < len(BASES):
            named = ", ".join(f"{number} {name or 'the host'}" for number, name in enumerate(BASES))
            raise ValueError(f"base is {self.base}: expected one of {named}")
        super().check(host, task, weights, folder, seed)

    def _claimed(self) -> dict[str, Any]:
        return {"difficulty": self.difficulty}

    @property
    def _updates(self) -> int | None:
        return None if self.minutes else self.steps

    def trained(
        self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int, device: torch.device
    ) -> dict[str, Trained]:
        start = self._start(host, task, weights, folder, seed)
        arms, steps = {START: Trained.of(start, None, steps=0)}, self._updates
        for name in reversed(ARMS):
            path = folder / f"{name}.safetensors"
            if not path.is_file():
                self._train(name, task, start, path, steps, seed, device)
                processes().wait()
            facts = checkpoint.load(path)[1]
            steps = facts["steps"]
            told = {fact: facts[fact] for fact in ("steps", "scores", "rewards", "plan", "recipe")}
            told["diary"] = facts.get("diary", {})
            arms[name] = Trained.of(path, path.with_suffix(".dprm") if name in LEARNING else None, **told)
        return {name: arms[name] for name in (START, *ARMS)}

    def _train(
        self, name: str, task: Task, start: Path, path: Path, steps: int | None, seed: int, device: torch.device
    ) -> None:
        """One arm from the start to its weights; the learned order is written before them."""
        model = copy.deepcopy(load_weights(start, device)[0]).requires_grad_(True)
        host = task.wrap(model, device).with_decoding(count=Fixed(self.width), temperature=self.heat)
        host = host if self.difficulty is None else host.at(self.difficulty)
        if (base := BASES[self.base]) is not None:
            host = host.with_decoding(signal=Order(signal=base).signal)
        order = self._learner(host, steps, name) if name in LEARNING else host.decoding.order()
        # Another seed than that of the first training's data: of the same split, but hardly ever the same problems.
        prompts = host.problems("train", self.stock, seed + 1)
        plan, recipe = self.plan(seed), self.recipe(seed, steps)
        law: Rollouts = (
            Letter(model, host, prompts, order, plan)
            if name == LETTER
            else Rollouts(model, host, prompts, order, plan, shuffled=name == "random")
        )
        held_out = host.problems("select", self.checked, 2)

        def evaluate(average: Transformer) -> dict[str, float]:
            few = task.wrap(average, device).with_decoding(count=Fixed(self.width))
            greedy = decoded(few, held_out, {"": Decode()}, rows=512)[""]
            rewards = [reward for _, reward in _rewards(run.log)][-20:]
            lately = sum(rewards) / max(1, len(rewards))
            return {"reward_lately": lately, "greedy": successes(few, greedy.scores).double().mean().item()}

        objective = Wdce(negative=self.negative)
        run = Training(model, law, recipe, path.parent / name, objective=objective, evaluate=evaluate, title=name)
        scores = run.run()
        if not run.processes.first:
            return
        if name in LEARNING:
            deployed(order, host=host.name, estimator="training").save(path.with_suffix(".dprm"))
        tenths: list[list[float]] = [[] for _ in range(10)]
        for step, reward in _rewards(run.log):
            tenths[min(9, 10 * (step - 1) // run.step)].append(reward)
        rewards = [sum(tenth) / len(tenth) if tenth else None for tenth in tenths]
        facts: dict[str, Any] = {"host": host.name, "law": name, "steps": run.step, "scores": scores}
        facts |= {"rewards": rewards, "plan": asdict(plan), "recipe": asdict(recipe), "diary": _diary(run.log)}
        save_weights(path, run.average, facts)

    def _learner(self, host: Host, steps: int | None, name: str) -> Order:
        lessons = None if steps is None else steps / (1 if name == LETTER else self.reuse)
        warm, switch = UNKNOWN if lessons is None else (self.begin * lessons, self.open * lessons)
        baseline = "none" if name == LETTER else "prompt"
        gate = Gate(warm, switch, self.ready)
        return learner(host, gate, shortlist=(8, 32, 4), beta=self.beta, baseline=baseline)


# Points of a curve that a card keeps.
POINTS = 60


def _diary(log: Path) -> dict[str, list[float | None]]:
    """What refreshes were like, by name, as means over at most `POINTS` stretches of the training."""
    entries = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    told = [entry for entry in entries if "reward" in entry]
    if not told:
        return {}
    count = min(POINTS, len(told))
    parts = [told[len(told) * point // count : len(told) * (point + 1) // count] for point in range(count)]
    names = dict.fromkeys(name for entry in told for name in entry)

    def mean(values: list[float]) -> float | None:
        return float(f"{sum(values) / len(values):.5g}") if values else None

    return {name: [mean([entry[name] for entry in part if name in entry]) for part in parts] for name in names}


def _rewards(log: Path) -> list[tuple[int, float]]:
    """(step, mean reward) of every refresh."""
    entries = map(json.loads, log.read_text().splitlines()) if log.is_file() else ()
    return [(entry["step"], entry["reward"]) for entry in entries if "reward" in entry]
