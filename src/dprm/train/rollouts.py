"""Rollouts under training, and the canvases on which they are learned from.

Every U updates the present model answers P prompts, G times each, under an order. The answers are rewarded and seen
U·R times on canvases that hide part of them:

    level    s = ⌊ρ S⌋ of S steps, ρ ~ U[j/UR, (j+1)/UR), one j after the other until all UR have had their turn
    prefix   hide every position that the rollout revealed after step s
    random   the same after the steps of the row have been dealt to its positions at random

Both laws hide equally many positions at a level: they differ in nothing but the order. In the progressive laws that is
the order that made the rollout, read from its step map, because a canvas it never passed through says nothing about its
reward. The rollouts of a prompt share their level: what all of them have in common then cancels where their weights add
up to 0. An order that explores observes the rewards of its own rollouts, each compared with the others of its prompt.

Which prompts a refresh sees is a function of (seed, refresh) alone: every arm of a comparison answers the same ones.
Shapes: P prompts, G rollouts of each, N = P·G, R masks of each in an update, L positions.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.decode.loop import Model
from dprm.host.host import Host, Problems
from dprm.host.identity import spec
from dprm.host.rollout import Decode
from dprm.order import Order, Stats
from dprm.order.checks import check_count, check_number
from dprm.order.noise import mix
from dprm.train import checkpoint, diary
from dprm.train.denoiser import Denoiser
from dprm.train.learner import check_fresh, evidence_of, restore_evidence
from dprm.train.masks import Canvases, MaskLaw, order_spec
from dprm.train.objective import likelihood_bound, log_ratio
from dprm.train.transformer import Transformer


@dataclass(frozen=True)
class RolloutPlan:
    """How rollouts are made and used.

    Attributes:
        prompts, generations: P and G.
        reuse, replicates: U updates from one set of rollouts, each on R masks of every rollout.
        bounds: masks on which log_rnd is estimated.
        sync: refreshes after which the present weights become the new reference; 0: the start stays the reference. The
            authors' trainer has 8 (64 updates), which keeps log_rnd from outgrowing r/α in long runs.
        seed: of prompts, answers and masks.
    """

    prompts: int = 32
    generations: int = 16
    reuse: int = 8
    replicates: int = 2
    bounds: int = 4
    sync: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("prompts", "reuse", "replicates", "bounds"):
            check_count(name, getattr(self, name), 1)
        check_count("sync", self.sync, 0)
        check_count("generations", self.generations, 2)  # A group of one has nothing to be compared with.


@dataclass(frozen=True)
class RolloutCanvases(Canvases):
    """Canvases of rollouts, B = R·P·G rows, with what objectives compare them by.

    Attributes:
        reward: [P,G] float64, terminal rewards. log_rnd: [P,G] float64, log p_ref − log p_cur of every rollout.
        reference: tokens [B,L] → logits [B,L,V] of p_ref, for objectives that compare on the same masks.
    """

    reward: Tensor
    log_rnd: Tensor
    reference: Model


def hidden_after(step_map: Tensor, share: Tensor) -> Tensor:
    """[B,L] bool: the positions revealed after the first ⌊share·S⌋ of the S steps of every row, at least one.

    Args:
        step_map: [B,L] int, the 1-based step of each reveal, 0 = given. share: [B] in [0, 1).
    """
    steps = step_map.amax(1)
    level = (share * steps).long().minimum(steps - 1)
    return step_map > level.unsqueeze(1)


def dealt_at_random(step_map: Tensor, draws: Draws) -> Tensor:
    """The step map of a random order with the same number of reveals at every step."""
    # Given positions come first in both sortings: they keep step 0.
    key = draws.uniform(*step_map.shape).masked_fill(step_map == 0, -1.0)
    return torch.empty_like(step_map).scatter_(1, key.argsort(1), step_map.sort(1).values)


class Rollouts(MaskLaw):
    """A mask law on the model's own answers.

    Args:
        model: the one under training. Its weights now are also the reference p_ref.
        host: poses, decodes and judges, as its `Decoding` says; its own model is not used.
        problems: the prompts. order: answers them.
        shuffled: hide at random instead of along the order of the rollout.

    Attributes:
        answering: the order that makes the rollouts.
        facts: of the last refresh: mean reward, share of prompts whose rewards differ, share of decisions that were not
            the host's own, mean |log_rnd|; and what `train.diary` tells.
    """

    def __init__(
        self,
        model: Transformer,
        host: Host,
        problems: Problems,
        order: Order,
        plan: RolloutPlan,
        *,
        shuffled: bool = False,
    ):
        if len(problems) < plan.prompts:
            raise ValueError(f"prompts is {plan.prompts}: expected at most {len(problems)}, as many as problems")
        # Of answers that are all alike none is better than the others of its prompt.
        check_number("temperature", host.decoding.temperature, 0, open_low=True)
        if order.explore:
            check_fresh(order)
        self.present, self.reference = Denoiser(model), Denoiser(copy.deepcopy(model).requires_grad_(False))
        self.host, self.problems, self.order, self.plan, self.shuffled = host, problems, order, plan, shuffled
        self.answering = order
        self.facts: dict[str, float] = {}
        self._seen: Canvases | None = None
        self._before: Stats | None = None
        self._first_order = order_spec(order)
        self._tokens = self._steps = self._reward = self._log_rnd = torch.empty(0)

    def spec(self) -> dict[str, Any]:
        whom = {"host": self.host.name, "decoding": spec(self.host.decoding), "preference": spec(self.host.preference)}
        how = {"order": self._first_order, "shuffled": self.shuffled, "plan": asdict(self.plan)}
        return {"name": "rollouts", **whom, "problems": self.problems.digest, **how}

    def canvases(self, step: int) -> RolloutCanvases:
        """[R·N,L] canvases of this update; every U-th begins with new rollouts."""
        plan = self.plan
        refresh, turn = divmod(step, plan.reuse)
        if turn == 0:
            self._refresh(refresh)
        strata = range(turn * plan.replicates, (turn + 1) * plan.replicates)
        masked = torch.cat([self._hide("updates", refresh, j, plan.reuse * plan.replicates) for j in strata])
        clean = self._tokens.repeat(plan.replicates, 1)
        noisy = clean.masked_fill(masked, self.host.decoding.mask_id)
        found = RolloutCanvases(clean, noisy, masked, self._reward, self._log_rnd, self.reference)
        self._seen = found if turn == 0 else None
        return found

    def advance(self, step: int, logits: Tensor) -> None:
        """Take down what the first canvases of a refresh look like."""
        if self._seen is not None:
            answers = (self._steps > 0).sum(1).repeat(self.plan.replicates)
            self.facts |= diary.of_update(logits, self._seen, answers)
            self._seen = None

    def lesson(self, step: int, average: Transformer) -> dict[str, float]:
        """What came of the rollouts, once for each refresh; the order has learned from them already."""
        return self.facts if (step - 1) % self.plan.reuse == 0 else {}

    def _hide(self, purpose: str, refresh: int, stratum: int, strata: int) -> Tensor:
        """[N,L] bool: what one mask of every rollout hides. Prompts begin with different strata."""
        name, device = (purpose, self.plan.seed, refresh, stratum), self.present.device
        prompt = torch.arange(self.plan.prompts, device=device)
        share = ((prompt + stratum) % strata + Draws("level", *name, device=device).uniform(len(prompt))) / strata
        # Draws of their own, so that all arms have the same levels.
        steps = dealt_at_random(self._steps, Draws("deal", *name, device=device)) if self.shuffled else self._steps
        return hidden_after(steps, share.repeat_interleave(self.plan.generations))

    def asked(self, refresh: int) -> Problems:
        """[N] the prompts of a refresh, no two alike, each G times."""
        index = Draws("prompts", self.plan.seed, refresh).permutations(len(self.problems))[: self.plan.prompts]
        return self.problems[index].copies(self.plan.generations)

    def _refresh(self, refresh: int) -> None:
        """New prompts and new answers; then the order learns from what it did."""
        plan, device = self.plan, self.present.device
        if plan.sync and refresh and refresh % plan.sync == 0:
            self.reference.model.load_state_dict(self.present.model.state_dict())
        asked = self.asked(refresh)
        result = Decode(self.answering).result(self.host, asked, mix(plan.seed, refresh), self.present)
        self._tokens, self._steps = result.tokens, result.step_map
        reward = self.host.reward(self.host.scores(asked, result.tokens.cpu()))
        grouped = reward.view(plan.prompts, plan.generations)
        self._reward, self._log_rnd = grouped.to(device), self._ratio(refresh).view_as(grouped)
        if self.order.explore and self.answering is self.order:
            self.order.observe(result.trace, reward, torch.arange(plan.prompts).repeat_interleave(plan.generations))
        self.facts = {
            **diary.of_rewards(grouped),
            **diary.of_reveals(result),
            **diary.of_order(self.order, self._before),
            "informative": (grouped.amax(1) > grouped.amin(1)).double().mean().item(),
            "changed": (result.trace.changed.sum() / result.trace.decisions.sum()).item(),
            "log_rnd": self._log_rnd.abs().mean().item(),
        }
        # What is known now; statistics are never changed in place.
        self._before = self.order.stats

    @torch.no_grad()
    def _ratio(self, refresh: int) -> Tensor:
        """[N] log p_ref − log p_cur of the present rollouts, on masks of the law's own."""
        bounds: dict[Denoiser, list[Tensor]] = {self.reference: [], self.present: []}
        positions = (self._steps > 0).sum(1)
        for stratum in range(self.plan.bounds):
            masked = self._hide("bounds", refresh, stratum, self.plan.bounds)
            noisy = self._tokens.masked_fill(masked, self.host.decoding.mask_id)
            for denoiser, bound in bounds.items():
                bound.append(likelihood_bound(denoiser(noisy), self._tokens, masked, positions))
        return log_ratio(bounds[self.reference], bounds[self.present])

    def state(self) -> dict[str, Tensor]:
        """The present rollouts, the evidence of an order that learns, and a reference that moves."""
        if not len(self._tokens):
            return {}
        state = {"tokens": self._tokens, "steps": self._steps, "reward": self._reward, "log_rnd": self._log_rnd}
        if self.plan.sync:
            state |= checkpoint.with_prefix("reference", self.reference.model.state_dict())
        return state | (evidence_of(self.order) if self.order.explore else {})

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from `state`, with an order that has not observed anything yet."""
        if not state:
            return
        device = self.present.device
        self._tokens, self._steps = state["tokens"].to(device), state["steps"].to(device)
        self._reward, self._log_rnd = state["reward"].to(device), state["log_rnd"].to(device)
        if self.plan.sync:
            self.reference.model.load_state_dict(checkpoint.without_prefix("reference", state))
        restore_evidence(self.order, state)
        self._before = self.order.stats
