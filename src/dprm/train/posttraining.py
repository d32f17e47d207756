"""DMPO post-training: from SFT weights, with WDCE on the model's own rollouts, in three arms.

    arm                       rollouts by                              canvases hide
    random                    confidence                               at random
    confidence-progressive    confidence                               what confidence would reveal later
    dprm-progressive          confidence, corrected by learned values  what that order would reveal later

The arms make the same number of updates on the same prompts. `dprm-progressive` draws shortlists from its gate's T_warm
on, and learns the values of its cells from the terminal rewards of the very rollouts it ordered, each compared with the
other answers to its prompt.

What an update does is a function of (weights, optimiser, rollouts, evidence, step); the checkpoint holds these, so a
run that is killed and resumed on a CPU ends in the same bits.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import torch
from torch import Tensor

from dprm.decode.loop import Aux
from dprm.order import Order
from dprm.train.prompts import Prompts
from dprm.train.recipe import Recipe
from dprm.train.rollouts import Plan, Rollouts
from dprm.train.training import Evaluation, Training, masked_loss
from dprm.train.transformer import Transformer
from dprm.train.wdce import wdce

ARMS = ("random", "confidence-progressive", "dprm-progressive")


def order_of(
    arm: str,
    *,
    warm: float = 40,
    switch: float = 160,
    ready: float = 128,
    rule: str = "shortlist_top_m",
    beta: float = 1.0,
    guidance: float = 1.0,
    aux: int = 1,
) -> Order:
    """The order that an arm starts with.

    Args:
        warm, switch, ready: the gate of `dprm-progressive`; the first two count refreshes. The paper has a tenth and
            four tenths of all updates, and 128.
        rule: how it selects, "shortlist_top_m" or "soft_bon"; `top_m` would never leave the host's order.
        beta, guidance: strength of its correction. aux: host-specific cell states.
    """
    if arm not in ARMS:
        raise ValueError(f"arm is {arm!r}: expected one of {', '.join(ARMS)}")
    if arm != "dprm-progressive":
        return Order()
    if rule == "top_m":
        raise ValueError("rule is 'top_m': from an empty table it never leaves the host's order and learns nothing")
    return Order(
        aux=aux,
        beta=beta,
        guidance=guidance,
        warm=warm,
        switch=switch,
        ready=ready,
        rule=rule,
        shortlist=(8, 32, 4),
        explore=True,
        baseline="prompt",
    )


def deployed(order: Order, rule: str | None = None) -> Order:
    """The order as it decodes after training: the same values with the full gate, no longer exploring.

    Args:
        rule: another way to select with these values; None: as it was trained.
    """
    return opened(Order.from_policy(order.policy(), rule=rule))


def opened(order: Order) -> Order:
    """The same order, at a step where its gate is open."""
    order.step = max(order.step, math.ceil(order.gate.switch))
    return order


class PostTraining(Training):
    """One arm (see `Training` for the attributes, the checkpoint and the log).

    Every line of `log.jsonl` about a refresh holds the facts of `Rollouts`, the mean reward among them.

    Args:
        start: the SFT weights, on their device; not changed. They are also the reference p_ref.
        prompts: what is asked, on the same device.
        arm: one of ARMS. order: of this arm, fresh from `order_of`.
        plan: how rollouts are made and used.
        recipe: the optimiser's numbers; steps count updates.
        folder: holds checkpoint and log; a checkpoint there is resumed.
        aux: the host's cell state, for an order that has several.
    """

    def __init__(
        self,
        start: Transformer,
        prompts: Prompts,
        arm: str,
        order: Order,
        plan: Plan,
        recipe: Recipe,
        folder: Path,
        *,
        aux: Aux | None = None,
        evaluate: Evaluation | None = None,
    ):
        if arm not in ARMS:
            raise ValueError(f"arm is {arm!r}: expected one of {', '.join(ARMS)}")
        if order.stats is not None:
            raise ValueError("order has observed rewards already: every arm starts from an empty one")
        model = copy.deepcopy(start).requires_grad_(True)
        self.rollouts = Rollouts(
            model,
            start,
            prompts,
            order,
            plan,
            shuffled=arm == "random",
            learns=arm == "dprm-progressive",
            aux=aux,
        )
        super().__init__(model, self.rollouts, recipe, folder, evaluate, title=arm)

    def _update(self) -> tuple[Tensor, Tensor]:
        done = super()._update()
        if self.step % self.rollouts.plan.reuse == 1 % self.rollouts.plan.reuse:
            # As a fact of the update just made: a checkpoint of the step before does not know of it.
            with (self.folder / "log.jsonl").open("a") as log:
                log.write(json.dumps({"step": self.step, **self.rollouts.facts}) + "\n")
        return done

    def _loss(self) -> tuple[Tensor, Tensor]:
        clean, noisy, masked = self.rollouts.canvases(self.step)
        advantage = self.rollouts.advantage
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            logits = self._forward(noisy)
        loss = wdce(masked_loss(logits, clean, masked).view(-1, *advantage.shape), advantage)
        return loss, logits
