"""Post-training with WDCE on the model's own rollouts, in three arms from one start.

    arm                       rollouts by                              canvases hide
    random                    the host's order                         at random
    confidence-progressive    the host's order                         what that order would reveal later
    dprm-progressive          it, corrected by learned values          what that order would reveal later

The arms make the same number of updates on the same prompts. `dprm-progressive` draws shortlists from its gate's T_warm
on and learns from the terminal rewards of the very rollouts it ordered. It comes first, being the dearest: where a time
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
from dprm.train import checkpoint
from dprm.train.denoiser import load_weights, save_weights
from dprm.train.learner import deployed, learner
from dprm.train.recipe import Recipe
from dprm.train.rollouts import RolloutPlan, Rollouts
from dprm.train.task import Task, successes
from dprm.train.training import Training
from dprm.train.trainings import START, FromStart, Trained
from dprm.train.transformer import Transformer
from dprm.train.wdce import Wdce

DPRM = "dprm-progressive"
ARMS = ("random", "confidence-progressive", DPRM)
# The gate opens from a tenth to four tenths of the refreshes, as in the paper; where their number is not known at the
# start, between these.
WARM, SWITCH = 0.1, 0.4
UNKNOWN = (40, 160)


@dataclass(frozen=True, kw_only=True)
class PostTrainings(FromStart):
    """The arms, and the start.

    Attributes:
        difficulty: of the prompts; None: the host as it is. stock: how many training problems they are drawn from.
        minutes: time limit of the first arm; 0: none, `steps` counts updates.
        prompts, generations: of a refresh, and rollouts of each. reuse, bounds, sync: see `RolloutPlan`.
        rate, average: peak learning rate, decay of the weight average. negative: λ of the objective.
        width, heat: positions a step and temperature of rollouts.
        ready: evidence that a cell of the learned order needs. checked: problems of the evaluations under way.
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
    ready: float = 128.0
    checked: int = 128

    SETTINGS = (
        *("stock", "minutes", "prompts", "generations", "reuse", "bounds", "sync"),
        *("rate", "average", "negative", "width", "heat", "ready", "checked"),
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
            seed=seed,
        )

    def check(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> None:
        self.recipe(seed, self._updates)
        Wdce(negative=self.negative)
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
            facts = checkpoint.load(path)[1]
            steps = facts["steps"]
            told = {fact: facts[fact] for fact in ("steps", "scores", "rewards", "plan", "recipe")}
            arms[name] = Trained.of(path, path.with_suffix(".dprm") if name == DPRM else None, **told)
        return {name: arms[name] for name in (START, *ARMS)}

    def _train(
        self, name: str, task: Task, start: Path, path: Path, steps: int | None, seed: int, device: torch.device
    ) -> None:
        """One arm from the start to its weights; the learned order is written before them."""
        model = copy.deepcopy(load_weights(start, device)[0]).requires_grad_(True)
        host = task.wrap(model, device).with_decoding(count=Fixed(self.width), temperature=self.heat)
        host = host if self.difficulty is None else host.at(self.difficulty)
        order = self._learner(host, steps) if name == DPRM else host.decoding.order()
        # Another seed than that of the first training's data: of the same split, but hardly ever the same problems.
        prompts = host.problems("train", self.stock, seed + 1)
        plan, recipe = self.plan(seed), self.recipe(seed, steps)
        law = Rollouts(model, host, prompts, order, plan, shuffled=name == "random")
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
        if name == DPRM:
            deployed(order, host=host.name, estimator="training").save(path.with_suffix(".dprm"))
        tenths: list[list[float]] = [[] for _ in range(10)]
        for step, reward in _rewards(run.log):
            tenths[min(9, 10 * (step - 1) // run.step)].append(reward)
        rewards = [sum(tenth) / len(tenth) if tenth else None for tenth in tenths]
        facts: dict[str, Any] = {"host": host.name, "law": name, "steps": run.step, "scores": scores}
        facts |= {"rewards": rewards, "plan": asdict(plan), "recipe": asdict(recipe)}
        save_weights(path, run.average, facts)

    def _learner(self, host: Host, steps: int | None) -> Order:
        refreshes = None if steps is None else steps / self.reuse
        warm, switch = UNKNOWN if refreshes is None else (WARM * refreshes, SWITCH * refreshes)
        return learner(host, Gate(warm, switch, self.ready), shortlist=(8, 32, 4))


def _rewards(log: Path) -> list[tuple[int, float]]:
    """(step, mean reward) of every refresh."""
    entries = map(json.loads, log.read_text().splitlines()) if log.is_file() else ()
    return [(entry["step"], entry["reward"]) for entry in entries if "reward" in entry]
