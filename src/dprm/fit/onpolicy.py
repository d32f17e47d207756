"""Algorithm 1 of the paper: decode, and credit every revealed position with the terminal reward of its trajectory.

A round takes the next prompts, decodes each of them several times under the order as it stands, exploring, and
observes the rewards centred inside each prompt. The statistics are exact and the random numbers of a round are a
function of (seed, round, prompt), so a fit that is killed goes on from its last round to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from dprm.fit.cost import Cost
from dprm.fit.resume import check_same_fit
from dprm.fit.tracking import Tracking
from dprm.host.host import Host, Problems
from dprm.host.rollout import batches
from dprm.order import Order, Policy
from dprm.order.noise import mix


@dataclass(frozen=True)
class OnPolicy:
    """The on-policy estimator.

    Attributes:
        rounds: rounds of decode and observe. prompts: prompts a round. samples: trajectories of each prompt.
        rule: how positions are drawn while learning; `top_m` would never leave the host's order.
        phases, bins, beta, ready: of the Order that learns.
        width: positions revealed a step; None: the host's own budget.
        temperature: of the tokens while learning; None: the host's own.
        seed: of everything.
    """

    rounds: int = 16
    prompts: int = 32
    samples: int = 4
    rule: str = "soft_bon"
    phases: int = 8
    bins: int = 16
    beta: float = 1.0
    ready: float = 64
    width: int | None = None
    temperature: float | None = None
    seed: int = 0

    @property
    def trajectories(self) -> int:
        """Decodings in all: what the fit costs."""
        return self.rounds * self.prompts * self.samples

    def fit(
        self, host: Host, problems: Problems, path: Path, on_round: Callable[[int, float], None] | None = None
    ) -> Policy:
        """Fit, or go on fitting where `path` holds a policy of this very fit.

        Args:
            problems: the fit split; rounds walk through it again and again.
            path: the policy is written here after every round.
            on_round: called with (rounds done, mean reward of the round).
        """
        if not len(problems):
            raise ValueError("problems is empty: a fit needs at least one prompt")
        notes = {"host": host.name, "estimator": "onpolicy", "problems": problems.digest, "setting": repr(self)}
        order, cost, tracking = self._start(host, path, notes)
        denoiser = host.denoiser()
        for turn in range(order.step, self.rounds):
            place = (torch.arange(self.prompts) + turn * self.prompts) % len(problems)
            part, group = problems.sampled(place, self.samples)
            ((result, rollout),) = batches(
                host,
                part,
                order,
                budget=self.width,
                temperature=self.temperature,
                seed=mix(self.seed, turn),
                rows=len(part),
                denoiser=denoiser,
            )
            before = order.stats
            order.observe(result.trace, rollout.reward, group=group)
            assert order.stats is not None
            tracking = tracking.then(before, order.stats, self.ready, self.rounds)
            cost += Cost(rollouts=len(part), calls=int(rollout.nfe.sum()))
            order.policy(**notes, **cost.notes(), tracking=tracking.note()).save(path)
            if on_round is not None:
                on_round(turn + 1, float(rollout.reward.mean()))
        return Policy.load(path)

    def _start(self, host: Host, path: Path, notes: dict[str, str]) -> tuple[Order, Cost, Tracking]:
        if path.is_file():
            policy = Policy.load(path)
            check_same_fit(path, policy.notes, notes)
            order = Order.from_policy(policy, explore=True)
            return order, Cost.of_notes(policy.notes), Tracking.of_notes(policy.notes)
        order = Order(
            phases=self.phases,
            bins=self.bins,
            aux=host.aux_states,
            beta=self.beta,
            ready=self.ready,
            rule=self.rule,
            explore=True,
            reward_range=host.reward_range,
        )
        return order, Cost(), Tracking()
