"""The branched head: branch, teach a head on the differences, branch again under its own policy.

A fit begins with the host's order, or with that order leaning on one feature where this is clearly better (`leaning`).
The branches are made in rounds; each is made under the order that all branches so far have taught, and that order may
correct more the more it has seen: after t of the rounds by t·m/2 log odds, m positions being revealed a step. No
decoding is spent on trying strengths in between; the strength of the policy is chosen on the select split.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from dprm.fit.branching import Branching
from dprm.fit.leaning import WORTHS, Leaning, leanings, problems_for, race
from dprm.fit.pool import Pool, problems_at_most
from dprm.fit.run import Run
from dprm.fit.teaching import scaled, teach
from dprm.order.head import Head
from dprm.order.order import Order
from dprm.order.policy import Policy

# Of the calls, what the race for a leaning may take.
RACE = 0.2
# Comparisons that make a cell ready.
_READY = 16
# Strengths in log odds that are tried of a policy on the select split.
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class HeadFit:
    """The branched head estimator.

    Attributes:
        branching: where and how to branch.
        rounds: collections, each on the next problems and under the head learned so far; with none the policy is what
            the fit leans on.
        reach: neighbours that the head sees on each side.
        signal: the host's signal that the head corrects; `odds` has the order of confidence and room near certainty.
            Hosts whose own order is another one keep it.
        worths: what a unit of the feature is worth in the leanings tried at the start, in log odds; none: no leaning.
    """

    branching: Branching = field(default_factory=Branching)
    rounds: int = 6
    reach: int = 4
    signal: str = "odds"
    worths: tuple[float, ...] = WORTHS

    @property
    def name(self) -> str:
        """As in commands."""
        return "head" if self.rounds else "leaning"

    def learn(self, run: Run) -> Policy:
        """Fit; see `fit.fit`."""
        tried = leanings(self.reach, single=getattr(run.host.decoding.count, "m", 0) == 1, worths=self.worths)
        trials = problems_for(RACE * run.calls, run.steps, len(tried))
        run.reserve(trials + (problems_at_most(run, self.branching) if self.rounds else 0))
        leaning = self._leaning(run, tried, trials)
        notes = {} if leaning is None else {"leaning": str(leaning)}
        if not self.rounds:
            order = self._order(run, Head.empty(run.host.decoding.states, self.reach, trials), leaning, 0.0)
            return order.policy(**notes)
        pool = Pool(run, self.branching)
        head, explained = Head.empty(run.host.decoding.states, self.reach), 0.0
        for turn in range(self.rounds):
            strength = 0.0
            if pool.parts:
                head, explained = teach(run.host, pool.branches, self.reach, pool.device)
                strength = 0.5 * turn * pool.width
            pool.collect(self._order(run, head, leaning, strength), turn, self.rounds)
        head, explained = teach(run.host, pool.branches, self.reach, pool.device)
        strength = 0.5 * self.rounds * pool.width
        if leaning is not None:
            led = self._order(run, head, leaning, strength).head
            assert led is not None
            head = scaled(led, pool.branches, pool.device)
        shuffled, _ = teach(run.host, pool.branches.shuffled(run.seed), self.reach, pool.device)
        run.shuffled = self._order(run, shuffled, None, strength).policy()
        return self._order(run, head, None, strength).policy(**notes, explained=f"{explained:.5f}")

    def strengths(self, policy: Policy) -> tuple[float, ...]:
        """Guidances to try of a fitted policy; none where it says nothing."""
        if policy.head is None or not bool(policy.head.weight.any()):
            return ()
        if self.rounds:
            return STRENGTHS
        return tuple(share * policy.guidance for share in (0.3, 1.0, 3.0))

    def _leaning(self, run: Run, tried: list[Leaning], trials: int) -> Leaning | None:
        """What the fit leans on, found in a race."""
        if not trials:
            return None
        problems, empty = run.take(trials), Head.empty(run.host.decoding.states, self.reach)

        def play(leaning: Leaning | None, rows: slice) -> Tensor:
            return run.rewards(self._order(run, empty, leaning, 0.0), problems[rows])

        return race(tried, play, trials)

    def _order(self, run: Run, head: Head, leaning: Leaning | None, strength: float) -> Order:
        """The order of a head at a strength, on top of what the fit leans on.

        Guidance times the head's value is all that an order adds, so the leaning is put into the head.
        """
        guidance = strength
        if leaning is not None:
            guidance, scale = (strength, 1.0) if strength > 0 else (1.0, 0.0)
            weight = head.weight.double() * scale + leaning.weight(head.aux, head.reach) / guidance
            # What it leans on was found in whole decodings, not in comparisons of cells.
            head = replace(head, weight=weight.float(), support=max(head.support, _READY))
        own = run.host.decoding.signal
        return Order(
            aux=run.host.decoding.states,
            guidance=guidance,
            ready=_READY,
            signal=self.signal if own.name == "confidence" else own,
            reward_range=run.host.reward_range,
            head=head,
        )
