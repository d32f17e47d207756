"""How a host is trained: the numbers of a recipe, its learning rates, and how many steps fit into a time limit."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch

from dprm.order.checks import check_count, check_number


@dataclass(frozen=True)
class Recipe:
    """The numbers of one training.

    Attributes:
        rows: B, sequences a step.
        steps: length of the training; None: as many as fit into `minutes`.
        minutes: time limit, evaluations included.
        rate: peak learning rate. warm: steps of linear warm-up; the speed is measured meanwhile.
        decay: weight decay of matrices. clip: largest gradient norm. betas: of AdamW.
        average: decay of the weight average (EMA); younger averages forget faster: min(average, (1+s)/(10+s)).
        evaluations: how often the evaluation is run, evenly spread; the last one is at the end.
        save_every: seconds between checkpoints. log_every: steps between log lines.
        compiled: use torch.compile. half: bfloat16 inside on a CPU too, as always on a GPU.
        seed: of the data and the masks.
    """

    rows: int = 1024
    steps: int | None = None
    minutes: float | None = None
    rate: float = 1e-3
    warm: int = 200
    decay: float = 0.05
    clip: float = 1.0
    betas: tuple[float, float] = (0.9, 0.98)
    average: float = 0.999
    evaluations: int = 6
    save_every: float = 30.0
    log_every: int = 100
    compiled: bool = False
    half: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError(f"steps is {self.steps} and minutes is {self.minutes}: expected exactly one of them")
        for name in ("rows", "warm", "evaluations", "log_every", *(["steps"] if self.minutes is None else [])):
            check_count(name, getattr(self, name), 1)
        for name in ("rate", "clip", *(["minutes"] if self.steps is None else [])):
            check_number(name, getattr(self, name), 0, open_low=True)

    def rate_at(self, step: int, steps: int | None) -> float:
        """Linear warm-up to the peak, then half a cosine to 0 at `steps`, which is not needed during the warm-up."""
        if step < self.warm:
            return self.rate * (step + 1) / self.warm
        if steps is None:
            return self.rate
        done = (step - self.warm) / max(1, steps - self.warm)
        return self.rate * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))

    def average_at(self, step: int) -> float:
        """Decay of the weight average at this step."""
        return min(self.average, (1.0 + step) / (10.0 + step))


class Stopwatch:
    """Seconds of a training, over all its sittings; turns a time limit into a number of steps once.

    Args:
        recipe: with its limit. spent: seconds of earlier sittings.
    """

    # Compilation and first allocations happen in the first steps; their speed says nothing.
    SETTLED = 50
    # Left for evaluations and checkpoints.
    RESERVE = 0.08

    def __init__(self, recipe: Recipe, spent: float, device: torch.device):
        self.recipe, self.device = recipe, device
        self._start = time.monotonic() - spent
        self._asked = 0
        self._mark: tuple[int, float] | None = None

    def seconds(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._start

    def steps(self, step: int) -> int | None:
        """The number of steps that fit, known from the end of the warm-up on; called before every step until then."""
        self._asked += 1
        if self._mark is None:
            if self._asked > min(self.SETTLED, self.recipe.warm // 2):
                self._mark = step, self._settled_seconds()
            return None
        if step < self.recipe.warm:
            return None
        now = self._settled_seconds()
        pace = (now - self._mark[1]) / max(1, step - self._mark[0])
        assert self.recipe.minutes is not None
        limit = 60.0 * self.recipe.minutes
        return step + max(1, int((limit - now - self.RESERVE * limit) / pace))

    def _settled_seconds(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return self.seconds()

    def allows_evaluation(self, spent_evaluating: float) -> bool:
        """Whether evaluations so far have stayed inside their share of the limit."""
        return self.recipe.minutes is None or spent_evaluating < 0.6 * self.RESERVE * 60.0 * self.recipe.minutes
