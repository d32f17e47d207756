"""Rollouts under training, and the canvases on which they are learned from.

Every U updates the present model answers P prompts, G times each, under the order of its arm. The answers are rewarded,
weighted against their group, and seen U·R times on canvases that hide part of them:

    level    s = ⌊ρ S⌋ of S steps, ρ ~ U[j/UR, (j+1)/UR), one j after the other until all UR have had their turn
    prefix   hide every position that the rollout revealed after step s
    random   the same after the steps of the row have been dealt to its positions at random

Both laws hide equally many positions at a level: they differ in nothing but the order. In the progressive laws that is
the order that made the rollout, read from its step map, because a canvas it never passed through says nothing about its
reward. The rollouts of a prompt share their level: what all of them have in common then cancels in Σ A = 0.
Shapes: P prompts, G rollouts of each, N = P·G, R masks of each in an update, L positions.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.decode import decode
from dprm.decode.loop import Aux
from dprm.order import Order
from dprm.order.checks import check_count, check_number
from dprm.order.noise import mix
from dprm.order.policy import evidence
from dprm.train import checkpoint
from dprm.train.denoiser import Denoiser
from dprm.train.masks import Canvases
from dprm.train.prompts import Prompts
from dprm.train.transformer import Transformer
from dprm.train.wdce import ALPHA, advantages, likelihood_bound, log_ratio, path_weights


@dataclass(frozen=True)
class Plan:
    """How rollouts are made and used.

    Attributes:
        prompts, generations: P and G.
        width, temperature: positions a step, and temperature, of a rollout.
        reuse, replicates: U updates from one set of rollouts, each on R masks of every rollout.
        bounds: masks on which log_rnd is estimated.
        sync: refreshes after which the present weights become the new reference; 0: the start stays the reference. The
            authors' trainer has 8 (64 updates), which keeps log_rnd from outgrowing r/α in long runs.
        alpha, negative: α and λ of the objective.
        seed: of prompts' answers and masks.
    """

    prompts: int = 32
    generations: int = 16
    width: int = 1
    temperature: float = 1.0
    reuse: int = 8
    replicates: int = 2
    bounds: int = 4
    sync: int = 0
    alpha: float = ALPHA
    negative: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("prompts", "width", "reuse", "replicates", "bounds"):
            check_count(name, getattr(self, name), 1)
        check_count("sync", self.sync, 0)
        check_count("generations", self.generations, 2)  # A group of one has nothing to be compared with.
        for name in ("temperature", "alpha"):
            check_number(name, getattr(self, name), 0, open_low=True)
        check_number("negative", self.negative, 0)


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


class Rollouts:
    """A mask law (see `masks.MaskLaw`) on the model's own answers.

    Args:
        model: the one under training. reference: p_ref, the weights it started from; not changed.
        prompts: what is asked. order: answers them.
        shuffled: hide at random instead of along the order of the rollout.
        learns: the order observes the rewards of its rollouts, prompt by prompt.
        aux: the host's cell state, as `dprm.decode` takes it; an order with one state has no use for it.

    Attributes:
        advantage: [P,G] of the present rollouts.
        facts: of the last refresh: mean reward, share solved, share of prompts whose rewards differ, share of decisions
            that were not the host's own, mean |log_rnd|, and how many rollouts of a prompt w rests on, 1/Σw².
    """

    def __init__(
        self,
        model: Transformer,
        reference: Transformer,
        prompts: Prompts,
        order: Order,
        plan: Plan,
        *,
        shuffled: bool,
        learns: bool,
        aux: Aux | None = None,
    ):
        self.present, self.reference = Denoiser(model), Denoiser(copy.deepcopy(reference) if plan.sync else reference)
        self.prompts, self.order, self.plan = prompts, order, plan
        self.aux = aux if order.cells.aux > 1 else None
        self.shuffled, self.learns = shuffled, learns
        self.facts: dict[str, float] = {}
        self.advantage = self._tokens = self._steps = torch.empty(0)

    def canvases(self, step: int) -> Canvases:
        """[R·N,L] canvases of this update; every U-th begins with new rollouts."""
        plan = self.plan
        refresh, turn = divmod(step, plan.reuse)
        if turn == 0:
            self._refresh(refresh)
        strata = range(turn * plan.replicates, (turn + 1) * plan.replicates)
        masked = torch.cat([self._hide("updates", refresh, j, plan.reuse * plan.replicates) for j in strata])
        clean = self._tokens.repeat(plan.replicates, 1)
        return Canvases(clean, clean.masked_fill(masked, self.prompts.mask_id), masked)

    def _hide(self, purpose: str, refresh: int, stratum: int, strata: int) -> Tensor:
        """[N,L] bool: what one mask of every rollout hides. Prompts begin with different strata."""
        name, device = (purpose, self.plan.seed, refresh, stratum), self.present.device
        prompt = torch.arange(self.plan.prompts, device=device)
        share = ((prompt + stratum) % strata + Draws("level", *name, device=device).uniform(len(prompt))) / strata
        # Draws of their own, so that all arms have the same levels.
        steps = dealt_at_random(self._steps, Draws("deal", *name, device=device)) if self.shuffled else self._steps
        return hidden_after(steps, share.repeat_interleave(self.plan.generations))

    def _refresh(self, refresh: int) -> None:
        """New prompts, new answers, new advantages; then the order learns from what it did."""
        plan = self.plan
        shape = plan.prompts, plan.generations
        if plan.sync and refresh and refresh % plan.sync == 0:
            self.reference.model.load_state_dict(self.present.model.state_dict())
        index, blank = self.prompts.draw(refresh, plan.prompts)
        result = decode(
            self.present,
            blank.repeat_interleave(plan.generations, 0),
            self.order,
            mask_id=self.prompts.mask_id,
            budget=plan.width,
            aux=self.aux,
            temperature=plan.temperature,
            seed=mix(plan.seed, refresh),
        )
        self._tokens, self._steps = result.tokens, result.step_map
        reward = self.prompts.reward(index.repeat_interleave(plan.generations), result.tokens)
        log_rnd = self._log_rnd(refresh).cpu()
        grouped, ratio = reward.view(shape), log_rnd.view(shape)
        self.advantage = advantages(grouped, ratio, plan.alpha, plan.negative).float().to(self.present.device)
        if self.learns:
            group = torch.arange(plan.prompts).repeat_interleave(plan.generations)
            self.order.observe(result.trace, reward, group)
        wanted, _ = path_weights(grouped, ratio, plan.alpha)
        self.facts = {
            "reward": reward.mean().item(),
            "solved": (reward == 1.0).double().mean().item(),
            "informative": (grouped.amax(1) > grouped.amin(1)).double().mean().item(),
            "changed": (result.trace.changed.sum() / result.trace.decisions.sum()).item(),
            "log_rnd": log_rnd.abs().mean().item(),
            "effective": (1.0 / wanted.square().sum(1)).mean().item(),
        }

    @torch.no_grad()
    def _log_rnd(self, refresh: int) -> Tensor:
        """[N] log p_ref − log p_cur of the present rollouts, on masks of the arm's own law."""
        bounds: dict[Denoiser, list[Tensor]] = {self.reference: [], self.present: []}
        positions = (self._steps > 0).sum(1)
        for stratum in range(self.plan.bounds):
            masked = self._hide("bounds", refresh, stratum, self.plan.bounds)
            noisy = self._tokens.masked_fill(masked, self.prompts.mask_id)
            for denoiser, found in bounds.items():
                found.append(likelihood_bound(denoiser(noisy), self._tokens, masked, positions))
        return log_ratio(bounds[self.reference], bounds[self.present])

    def advance(self, step: int, logits: Tensor) -> None:
        """Nothing: the levels follow from the step."""

    def state(self) -> dict[str, Tensor]:
        """The present rollouts, the evidence of an order that learns, and a reference that moves."""
        if not len(self._tokens):
            return {}
        state = {"tokens": self._tokens, "steps": self._steps, "advantage": self.advantage}
        stats = self.order.stats
        if self.learns and stats is not None:
            state |= {"moments": stats.moments, "observed": torch.tensor(self.order.step)}
        if self.plan.sync:
            state |= checkpoint.with_prefix("reference", self.reference.model.state_dict())
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from `state`, with an order that has not observed anything yet."""
        if not state:
            return
        groups, shape = tuple(state["advantage"].shape), (self.plan.prompts, self.plan.generations)
        if groups != shape:
            raise ValueError(f"the checkpoint holds rollouts {groups}, the plan is {shape}: go on with the same plan")
        device = self.present.device
        self._tokens, self._steps, self.advantage = (
            state[name].to(device) for name in ("tokens", "steps", "advantage")
        )
        if self.plan.sync:
            self.reference.model.load_state_dict(checkpoint.part("reference", state))
        if "moments" in state:
            baseline = "prompt" if self.order.baseline == "auto" else self.order.baseline
            stats = evidence(self.order.cells, self.order.beta, self.order.reward_range, baseline)
            stats.moments = state["moments"].cpu()
            self.order.merge(stats)
            self.order.step = int(state["observed"])
