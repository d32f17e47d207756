"""The paper's own estimator, to the letter: Algorithm 1 with its cells, gate, β and shortlist, and no baseline.

What a host's controller is stands with the host (`Host.paper`). It is deployed as the paper deploys it, at a guidance
that was fixed beforehand: the select split is looked at as always, but does not decide. So it is a row to compare with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dprm.fit.onpolicy import OnPolicy
from dprm.fit.run import Run
from dprm.fit.sets import Sets
from dprm.host.controller import Controller
from dprm.order.policy import Policy

PAPER = "paper"


@dataclass(frozen=True)
class Paper:
    """The estimator.

    Attributes:
        prompts: a round at most. samples: trajectories of each prompt.
    """

    prompts: int = 32
    samples: int = 4

    name = PAPER

    def learn(self, run: Run) -> Policy:
        """Fit; see `fit.fit`."""
        own = run.host.paper
        policy = self._sets(own).learn(run) if own.sets else self._trajectories(own).learn(run)
        ready = own.ready if own.decoding_ready is None else own.decoding_ready
        gate = replace(policy.gate, ready=ready)
        return replace(
            policy,
            gate=gate,
            step=max(policy.step, math.ceil(gate.switch)),
            guidance=own.guidance,
            rule=own.rule,
            shortlist=own.shortlist,
            notes={**policy.notes, "controller": repr(own)},
        )

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """The paper's guidance; there is nothing to choose."""
        return (policy.guidance,)

    def _trajectories(self, own: Controller) -> OnPolicy:
        return OnPolicy(
            prompts=self.prompts,
            samples=self.samples,
            rule=own.rule,
            phases=own.phases,
            bins=own.bins,
            beta=own.beta,
            baseline="none",
            aux=own.states,
            gate=(0, 0, own.ready),
            ramp=(own.warm, own.switch),
            shortlist=own.shortlist,
            warm_signal=own.warm_signal,
        )

    def _sets(self, own: Controller) -> Sets:
        gate = (0, 0, own.ready)
        return Sets(phases=own.phases, bins=own.bins, beta=own.beta, gate=gate, credit="terminal", rule=own.rule)
