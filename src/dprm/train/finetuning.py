"""Fine-tuning with SDPO on rewarded sequences, in five arms from one start.

    arm                       sequences are seen on canvases that hide
    native                    at random
    confidence-progressive    what an order by confidence would reveal later
    uncertainty-progressive   what an order by 1 − max p would reveal later
    dprm                      what confidence, corrected by learned values, would reveal later
    dprm-random               the same, with a random order before the values count

The arms make the same number of updates on the same sequences, and share masks between model and reference. The last
two learn their values from the terminal rewards of periodic decodes, and write their order beside the weights; there is
one of each for every number of phases that their cells tell apart.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.host.host import Host
from dprm.order import Gate, Order
from dprm.train import checkpoint
from dprm.train.denoiser import Denoiser, load_weights, save_weights
from dprm.train.learner import deployed, learner
from dprm.train.learning import LearningPool
from dprm.train.masks import Data, MaskLaw, RandomMasks
from dprm.train.parallel import processes
from dprm.train.pool import ProgressivePool
from dprm.train.recipe import Recipe
from dprm.train.sdpo import Sdpo
from dprm.train.task import Task
from dprm.train.training import Training
from dprm.train.trainings import START, FromStart, Trained

NATIVE, CONFIDENCE, UNCERTAINTY = "native", "confidence-progressive", "uncertainty-progressive"
DPRM, DPRM_RANDOM = "dprm", "dprm-random"
LEARNED = (DPRM, DPRM_RANDOM)


@dataclass(frozen=True, kw_only=True)
class FineTunings(FromStart):
    """The arms, and the start.

    Attributes:
        reward: sequences [B,L] → [B] in [0, 1]: the host's terminal reward, and nothing else that it measures.
        batch: sequences an update. rate: peak learning rate. beta, scale: of the objective.
        phases, bins, ready: of the learned order's cells, see `arms`. warm, switch: of its gate, as shares of the
            lessons.
        every: updates between two lessons. prompts, answers: of a lesson.
    """

    reward: Callable[[Tensor], Tensor]
    steps: int | None = 400
    batch: int = 512
    rate: float = 1e-5
    beta: float = 0.5
    scale: float = 10.0
    phases: tuple[int, ...] = (1,)
    bins: int = 10
    ready: float = 64.0
    warm: float = 0.14
    switch: float = 0.54
    every: int = 10
    prompts: int = 1
    answers: int = 64

    SETTINGS = (
        *("batch", "rate", "beta", "scale", "phases", "bins", "ready"),
        *("warm", "switch", "every", "prompts", "answers"),
    )
    # Every number of phases has arms of its own.
    ADDED = ("phases",)

    @property
    def arms(self) -> dict[str, int]:
        """By name, the phases of its order: those of 1, 4 and 8 phases are `dprm`, `dprm 4 phases`, `dprm 8 phases`."""
        learned = {name if n == 1 else f"{name} {n} phases": n for n in self.phases for name in LEARNED}
        return {NATIVE: 1, CONFIDENCE: 1, UNCERTAINTY: 1, **learned}

    def rehearsal(self) -> FineTunings:
        return replace(self, batch=8, steps=6, every=2, answers=4, ready=4.0, tiny=32, phases=(1, 2))

    def check(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> None:
        self.recipe(seed)
        super().check(host, task, weights, folder, seed)

    def recipe(self, seed: int) -> Recipe:
        """The optimiser's numbers."""
        assert self.steps is not None
        warm = max(1, self.steps // 20)
        how: dict[str, Any] = {"rows": self.batch, "steps": self.steps, "rate": self.rate, "warm": warm, "seed": seed}
        return Recipe(**how, decay=0.0, average=0.99, compiled=self.fast, half=self.fast)

    def trained(
        self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int, device: torch.device
    ) -> dict[str, Trained]:
        start = self._start(host, task, weights, folder, seed)
        arms = {START: Trained.of(start, None, steps=0)}
        for name, phases in self.arms.items():
            path, learns = folder / f"{name}.safetensors", name.startswith(DPRM)
            if not path.is_file():
                self._train(name, phases, task, start, path, seed, device)
                processes().wait()
            facts = checkpoint.load(path)[1]
            told = {fact: facts[fact] for fact in ("steps", "recipe", "objective")}
            arms[name] = Trained.of(path, path.with_suffix(".dprm") if learns else None, **told)
        return arms

    def _train(
        self, name: str, phases: int, task: Task, start: Path, path: Path, seed: int, device: torch.device
    ) -> None:
        """One arm from the start to its weights; a learned order is written before them."""
        reference, _ = load_weights(start, device)
        model = copy.deepcopy(reference).requires_grad_(True)
        host = task.wrap(model, device)
        data, recipe = task.data(seed, device, path.parent), self.recipe(seed)
        order = self._order(name, phases, host)
        law = self._law(name, order, data, host, task, seed, device)
        usual = Denoiser(reference)
        if self.fast:
            usual.compile()
        objective = Sdpo(usual, self.reward, self.beta, self.scale)
        run = Training(model, law, recipe, path.parent / name, objective=objective, title=name)
        run.run()
        if not run.processes.first:
            return
        if isinstance(law, LearningPool):
            deployed(order, host=host.name, estimator="training").save(path.with_suffix(".dprm"))
        facts: dict[str, Any] = {"host": host.name, "law": name, "steps": run.step, "recipe": asdict(recipe)}
        facts["objective"] = {"name": "sdpo", "beta": self.beta, "scale": self.scale}
        save_weights(path, run.average, facts)

    def _order(self, name: str, phases: int, host: Host) -> Order:
        if not name.startswith(DPRM):
            return Order(signal="uncertainty" if name == UNCERTAINTY else "confidence")
        assert self.steps is not None
        lessons = self.steps / self.every
        return learner(
            host.with_decoding(signal=Order(signal="confidence").signal),
            Gate(self.warm * lessons, self.switch * lessons, self.ready),
            shortlist=(64, 64, 1),
            warm_signal="random" if name.startswith(DPRM_RANDOM) else None,
            phases=phases,
            bins=self.bins,
        )

    def _law(
        self, name: str, order: Order, data: Data, host: Host, task: Task, seed: int, device: torch.device
    ) -> MaskLaw:
        if name == NATIVE:
            return RandomMasks(data, self.batch, seed, device)
        phases = min(task.phases, self.batch)
        if name.startswith(DPRM):
            how: dict[str, Any] = {
                "prompts": self.prompts,
                "samples": self.answers,
                "every": self.every,
                "fast": self.fast,
            }
            return LearningPool(data, self.batch, host, order, phases, seed, device, **how)
        return ProgressivePool(data, self.batch, order, phases, seed, device)
