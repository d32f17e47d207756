"""Algorithm 2 of the paper to the letter: the order is learned, and its canvases are made, while rollouts are reused.

    for each refresh     completions by the host's own order, rewards and WDCE weights
    for each of U updates, of every rollout, that begins with everything masked
        run the denoiser; WDCE on the masked positions
        s_i = log p_i + η(φ, b_i) β R̂(φ, b_i); draw a shortlist by confidence, take the top m of it under s
        write the rollout's own tokens there (teacher forcing), and add exp(βR) to the cells of these positions

So canvases follow what the order would do now, not the steps in which the rollout was made, and cells are credited with
rewards of completions that another order made. `Rollouts` does neither; both are arms of a study. U updates reveal
U equal shares of an answer, the last of them never its end. Shapes: N rollouts, R masks of each, L positions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dprm.host.host import Host, Problems
from dprm.order import Order
from dprm.order.noise import mix
from dprm.train.rollouts import RolloutCanvases, RolloutPlan, Rollouts
from dprm.train.transformer import Transformer


class Letter(Rollouts):
    """Rollouts whose canvases an order walks while it learns.

    Args:
        order: learns, and chooses what is shown next; completions are made by the host's own order.
    """

    def __init__(self, model: Transformer, host: Host, problems: Problems, order: Order, plan: RolloutPlan):
        super().__init__(model, host, problems, order, plan)
        self.answering = host.decoding.order()
        self._noisy = torch.empty(0)

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "name": "letter"}

    def canvases(self, step: int) -> RolloutCanvases:
        turn = step % self.plan.reuse
        if turn == 0:
            self._refresh(step // self.plan.reuse)
            hidden = (self._steps > 0).repeat(self.plan.replicates, 1)
            self._noisy = self._clean().masked_fill(hidden, self.host.decoding.mask_id)
        masked = self._noisy == self.host.decoding.mask_id
        found = RolloutCanvases(self._clean(), self._noisy, masked, self._reward, self._log_rnd, self.reference)
        self._seen = found if turn == 0 else None
        return found

    def advance(self, step: int, logits: Tensor) -> None:
        """Show the next share of every rollout, and credit what was chosen."""
        super().advance(step, logits)
        decoding = self.host.decoding
        assert decoding.reader is not None
        masked = self._noisy == decoding.mask_id
        answers = (self._steps > 0).sum(1).repeat(self.plan.replicates)
        left = masked.sum(1)
        shown = (answers * (step % self.plan.reuse + 1)) // self.plan.reuse
        budget = (shown.minimum(answers - 1) - (answers - left)).clamp(min=0)
        reading = decoding.reader.read(logits, None)
        reading = replace(reading, tokens=torch.where(masked, reading.tokens, self._noisy))
        aux = None
        if self.order.cells.aux > 1 and decoding.state_of is not None:
            aux = decoding.state_of(self._noisy, reading)
        progress = 1.0 - left / answers.clamp(min=1)
        seed = mix(self.plan.seed, step, 4)
        choice = self.order.select(reading, masked, budget, progress, aux, seed=seed)
        self._noisy = torch.where(choice.mask, self._clean(), self._noisy)
        reward = self._reward.flatten().repeat(self.plan.replicates).cpu()
        prompt = torch.arange(self.plan.prompts).repeat_interleave(self.plan.generations)
        self.order.observe(choice, reward, prompt.repeat(self.plan.replicates))

    def state(self) -> dict[str, Tensor]:
        state = super().state()
        before = {} if self._before is None else {"before": self._before.moments}
        return {**state, "noisy": self._noisy, **before} if state else {}

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore(state)
        if "noisy" in state:
            self._noisy = state["noisy"].to(self.present.device)
        if "before" in state and self._before is not None:
            self._before = self._before.empty().restore(state["before"].cpu())
        elif "noisy" in state:
            self._before = None

    def _clean(self) -> Tensor:
        """[R·N,L] the rollouts, as often as they are masked."""
        return self._tokens.repeat(self.plan.replicates, 1)
