"""The streaming pool whose order learns while the model is trained: DPRM-progressive masks.

Now and then the averaged model decodes a few training problems with the pool's own order, exploring, and the order
observes their *terminal* rewards, each relative to the other answers to its problem. The next canvases are then
advanced by what it has learned. The evidence is part of the checkpoint.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.decode.state import State
from dprm.host.host import Host, Problems
from dprm.host.rollout import batches
from dprm.order import Order, Reading
from dprm.order.noise import mix
from dprm.order.policy import evidence
from dprm.train.masks import Data
from dprm.train.pool import ProgressivePool


class LearningPool(ProgressivePool):
    """A progressive pool with an order that observes terminal rewards.

    Args:
        host: gives cell states, problems and rewards; its model is replaced at every lesson.
        prompts, samples: problems of a lesson, and answers to each.
        warm, switch, ready: the gate; the first two count lessons.
    """

    def __init__(
        self,
        data: Data,
        rows: int,
        host: Host,
        phases: int = 8,
        seed: int = 0,
        device: torch.device | str = "cpu",
        *,
        prompts: int = 32,
        samples: int = 8,
        warm: float = 4,
        switch: float = 16,
        ready: float = 64,
        beta: float = 1.0,
    ):
        order = Order(
            aux=host.aux_states,
            beta=beta,
            warm=warm,
            switch=switch,
            ready=ready,
            rule="shortlist_top_m",
            explore=True,
            baseline="prompt",
            reward_range=host.reward_range,
        )
        super().__init__(data, rows, order, phases, seed, device, self._cells if host.aux_states > 1 else None)
        self.host, self.prompts, self.samples = host, prompts, samples
        self._stock: Problems | None = None

    def _cells(self, noisy: Tensor, reading: Reading) -> Tensor:
        return self.host.aux(State.start(noisy, self.data.mask_id, 0), reading)

    def lesson(self, taught: Host, step: int) -> float:
        """Decode and observe; returns the mean reward. `taught` is the host with the present model."""
        if self._stock is None:
            self._stock = taught.problems("train", 16 * self.prompts, self.seed)
        place = (torch.arange(self.prompts) + self.order.step * self.prompts) % len(self._stock)
        problems, group = self._stock.sampled(place, self.samples)
        ((result, rollout),) = batches(taught, problems, self.order, seed=mix(self.seed, step), rows=len(group))
        self.order.observe(result.trace, rollout.reward, group=group)
        return float(rollout.reward.mean())

    def state(self) -> dict[str, Tensor]:
        stats = self.order.stats
        learned = {} if stats is None else {"moments": stats.moments, "lessons": torch.tensor(self.order.step)}
        return {**super().state(), **learned}

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: part for name, part in state.items() if name not in ("moments", "lessons")})
        if "moments" in state:
            stats = evidence(self.order.cells, self.order.beta, self.order.reward_range, "prompt")
            stats.moments = state["moments"].cpu()
            self.order.merge(stats)
            self.order.step = int(state["lessons"])
