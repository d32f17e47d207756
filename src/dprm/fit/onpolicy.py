"""Algorithm 1 of the paper: decode, and credit every revealed position with the terminal reward of its trajectory.

A round takes the next prompts, decodes each of them several times under the order as it stands, exploring, and
observes the rewards centred inside each prompt (or as they are, with the paper's baseline "none").
"""

from __future__ import annotations

from dataclasses import dataclass

from dprm.fit.events import Events
from dprm.fit.run import Run
from dprm.fit.tracking import Tracking
from dprm.order.checks import check_count
from dprm.order.order import Order
from dprm.order.policy import Policy


@dataclass(frozen=True)
class OnPolicy:
    """The on-policy estimator.

    Attributes:
        prompts: prompts a round at most. samples: trajectories of each prompt.
        rule: how positions are drawn while learning; `top_m` would never leave the host's order.
        phases, bins, beta, baseline: of the Order that learns. aux: whether its cells know the host's state.
        gate: (T_warm, T_switch, N_ready), the first two in rounds.
        ramp: T_warm and T_switch as shares of the rounds, in place of the gate's; None: the gate's.
        shortlist: (least, most, per m).
        warm_signal: the order before T_warm, where it is another one.
        temperature: of the tokens while learning; None: the host's own.
    """

    prompts: int = 32
    samples: int = 4
    rule: str = "soft_bon"
    phases: int = 8
    bins: int = 16
    beta: float = 1.0
    baseline: str = "auto"
    aux: bool = True
    gate: tuple[float, float, float] = (0, 0, 64)
    ramp: tuple[float, float] | None = None
    shortlist: tuple[int, int, int] = (8, 64, 4)
    warm_signal: str | None = None
    temperature: float | None = None

    name = "onpolicy"

    def __post_init__(self) -> None:
        check_count("prompts", self.prompts, 1)
        check_count("samples", self.samples, 1)
        warm, switch, ready = self.gate
        # An Order says what is wrong with a setting; better before the first decoding than after it.
        Order(self.phases, self.bins, 1, self.beta, 1.0, warm, switch, ready, rule=self.rule, baseline=self.baseline)

    def learn(self, run: Run) -> Policy:
        """Fit; see `fit.fit`."""
        steps = run.steps  # To know it takes a few decodings, which are paid for as well.
        affordable = max(1, int((run.calls - run.cost.calls) / (steps * self.samples)))
        # Even rounds, so that no calls are left over.
        rounds = -(-affordable // self.prompts)
        prompts = affordable // rounds
        run.reserve(rounds * prompts)
        host = run.host
        warm, switch, ready = self.gate
        if self.ramp is not None:
            warm, switch = (share * rounds for share in self.ramp)
        order = Order(
            phases=self.phases,
            bins=self.bins,
            aux=host.decoding.states if self.aux else 1,
            beta=self.beta,
            warm=warm,
            switch=switch,
            ready=ready,
            signal=host.decoding.signal,
            warm_signal=self.warm_signal,
            rule=self.rule,
            shortlist=self.shortlist,
            explore=True,
            baseline=self.baseline,
            reward_range=host.reward_range,
        )
        tracking = Tracking()
        for turn in range(rounds):
            problems = run.take(prompts).copies(self.samples)
            columns = run.trajectories(order, problems, turn, self.temperature)
            before = order.stats
            events = Events(len(problems), columns["row"], columns["cell"])
            order.observe(events, host.reward(columns["scores"]), problems.groups.cpu())
            assert order.stats is not None
            tracking = tracking.then(before, order.stats, ready, rounds)
        return order.policy(tracking=tracking.note())

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try of a fitted policy."""
        return (0.5, 1.0, 2.0, 4.0)
