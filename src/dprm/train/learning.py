"""The streaming pool whose order learns while the model is trained: DPRM-progressive masks.

Now and then the averaged model decodes a few training problems with the pool's own order, exploring, and the order
observes their *terminal* rewards, each relative to the other answers to its problem. The next canvases are then
advanced by what it has learned. The evidence is part of the checkpoint.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dprm.host.host import Host, Problems
from dprm.host.identity import spec
from dprm.host.rollout import Decode
from dprm.order import Order
from dprm.order.noise import mix
from dprm.train.denoiser import Denoiser
from dprm.train.learner import check_fresh, evidence_of, restore_evidence
from dprm.train.masks import Data
from dprm.train.pool import ProgressivePool
from dprm.train.transformer import Transformer


class LearningPool(ProgressivePool):
    """A progressive pool with an order that observes terminal rewards.

    Args:
        host: gives cell states, problems and rewards; its own model is not used.
        order: see `learner`.
        prompts, samples: problems of a lesson, and answers to each. every: steps between two lessons.
        fast: decode with the averaged model compiled, see `Denoiser.compile`.
    """

    def __init__(
        self,
        data: Data,
        rows: int,
        host: Host,
        order: Order,
        phases: int = 8,
        seed: int = 0,
        device: torch.device | str = "cpu",
        *,
        prompts: int = 32,
        samples: int = 8,
        every: int = 100,
        fast: bool = False,
    ):
        check_fresh(order)
        state_of = host.decoding.state_of if order.cells.aux > 1 else None
        super().__init__(data, rows, order, phases, seed, device, state_of)
        self.host, self.prompts, self.samples, self.every, self.fast = host, prompts, samples, every, fast
        self._stock: Problems | None = None
        self._average: Denoiser | None = None

    def spec(self) -> dict[str, Any]:
        lessons = {"prompts": self.prompts, "samples": self.samples, "every": self.every}
        whom = {"host": self.host.name, "decoding": spec(self.host.decoding), "preference": spec(self.host.preference)}
        return {**super().spec(), "name": "learning", **whom, **lessons}

    def lesson(self, step: int, average: Transformer) -> dict[str, float]:
        """Every so often decode and observe; the mean reward."""
        if step % self.every:
            return {}
        if self._stock is None:
            self._stock = self.host.problems("train", 16 * self.prompts, self.seed)
        if self._average is None or self._average.model is not average:
            self._average = Denoiser(average)
            if self.fast:
                self._average.compile()
        index = (torch.arange(self.prompts) + self.order.step * self.prompts) % len(self._stock)
        asked = self._stock[index].copies(self.samples)
        result = Decode(self.order).result(self.host, asked, mix(self.seed, step), self._average)
        reward = self.host.reward(self.host.scores(asked, result.tokens.cpu()))
        self.order.observe(result.trace, reward, torch.arange(self.prompts).repeat_interleave(self.samples))
        return {"taught": float(reward.mean())}

    def state(self) -> dict[str, Tensor]:
        return super().state() | evidence_of(self.order)

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore(state)
        restore_evidence(self.order, state)
