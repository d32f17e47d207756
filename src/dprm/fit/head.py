"""The branched head: branch, teach a head on the differences, branch again under its own policy.

The first round branches from the host's order, or from that order leaning on one feature where this is clearly better
(`leaning`); each later one from the order that the head of the round before adds to it, at a strength that does well on
a few problems of the fit split. What is branched is kept in a file a round, and the order of the next round in the
policy, so a fit that is killed goes on from there to the same policy.

How strongly a head should correct is not known from its values: the fewer branches it has seen, the smaller they are,
however right their order. So strengths are tried in log odds: strength = guidance · spread, where the spread is that of
the differences the head predicts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from dprm.decode.loop import Denoiser
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching, positions_a_step
from dprm.fit.cost import Cost
from dprm.fit.leaning import Leaning, leanings, race
from dprm.fit.resume import check_same_fit
from dprm.fit.teaching import Taught, spread, teach
from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout, batches
from dprm.order import Order, Policy
from dprm.order.head import Head, HeadShape
from dprm.order.noise import mix


@dataclass(frozen=True)
class HeadFit:
    """The branched head estimator.

    Attributes:
        branching: where and how to branch.
        rounds: collections, each on the next problems of the fit split and under the head learned so far; with none the
            policy is what the fit leans on.
        trials: problems of the fit split, apart from those branched on, that choose what to lean on and the
            strength between rounds.
        strengths: what is tried between rounds; 0, the host's order, is always among them.
        reach: neighbours that the head sees on each side.
        signal: the host's signal that the head corrects; `odds` has the order of confidence and room near certainty.
        worths: what a unit of the feature is worth in the leanings tried at the start, in log odds; none: no leaning.
    """

    branching: Branching = field(default_factory=Branching)
    rounds: int = 3
    trials: int = 512
    strengths: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
    reach: int = 4
    signal: str = "odds"
    worths: tuple[float, ...] = (10.0, 40.0)

    def fit(
        self, host: Host, problems: Problems, path: Path, on_round: Callable[[int, float], None] | None = None
    ) -> Policy:
        """Fit, or go on fitting from the rounds kept beside `path`.

        Args:
            problems: the fit split: first the trials, then as many parts as there are rounds.
            on_round: called with (rounds done, what the head explains on other problems).
        """
        least = self.trials + self.rounds
        if len(problems) < least:
            raise ValueError(f"problems has {len(problems)} prompts: this fit needs at least {least}")
        name = "head" if self.rounds else "leaning"
        notes = {"host": host.name, "estimator": name, "problems": problems.digest, "setting": repr(self)}
        trials, rest = problems[: self.trials], problems[self.trials :]
        denoiser = host.denoiser()
        shape = HeadShape(host.aux_states, self.reach)
        if not path.is_file():
            self._start(host, trials, shape, denoiser, notes).save(path)
        policy = Policy.load(path)
        check_same_fit(path, policy.notes, notes)
        order, cost, first = Order.from_policy(policy), Cost.of_notes(policy.notes), int(policy.notes["rounds"])
        leant = {"leaning": policy.notes["leaning"]} if "leaning" in policy.notes else {}
        leaning = Leaning.read(leant["leaning"]) if leant else None
        collected: list[Branches] = []
        for turn in range(self.rounds if first < self.rounds else 0):
            part = rest[turn * len(rest) // self.rounds : (turn + 1) * len(rest) // self.rounds]
            file = path.with_name(f"{path.name}.round{turn}")
            branches = _kept(file, notes)
            if branches is None:
                setting = replace(self.branching, seed=mix(self.branching.seed, turn))
                branches = setting.collect(host, part, order, denoiser)
                branches.save(file, notes)
            collected.append(branches)
            if turn < first:
                continue
            known = Branches.joined(collected)
            taught = teach(known, shape, problems.canvas.device)
            order, spent = self._best(host, trials, taught, leaning, denoiser)
            cost += branches.cost + spent
            wide = taught.spread
            if leaning is not None and order.head is not None:
                wide = spread(order.head, known, problems.canvas.device)
            said = {"explained": f"{taught.explained:.5f}", "spread": f"{wide:.9g}", "rounds": str(turn + 1)}
            order.policy(**notes, **leant, **said, **cost.notes()).save(path)
            if on_round is not None:
                on_round(turn + 1, taught.explained)
        return Policy.load(path)

    def guidances(self, policy: Policy) -> tuple[float, ...]:
        """What to try of a fitted policy: strengths, and what the trials chose; none where it says nothing."""
        if "spread" in policy.notes:
            found = self._strengths(float(policy.notes["spread"]))
            return tuple(sorted({*found, policy.guidance} - {0.0})) if found else ()
        return tuple(share * policy.guidance for share in (0.3, 1.0, 3.0)) if policy.guidance else ()

    def _strengths(self, spread: float) -> tuple[float, ...]:
        """The strengths as guidances of a head of this spread."""
        return tuple(float(f"{strength / spread:.3g}") for strength in self.strengths) if spread > 0 else ()

    def _start(
        self, host: Host, trials: Problems, shape: HeadShape, denoiser: Denoiser, notes: dict[str, str]
    ) -> Policy:
        """The policy to branch under first: the host's order, or what it is better to lean on."""
        nothing, cost = Head(shape, support=len(trials)), Cost()

        def play(leaning: Leaning | None, part: slice) -> Tensor:
            nonlocal cost
            reward, spent = self._played(host, trials[part], self._leant(host, nothing, leaning), denoiser)
            cost += spent
            return reward

        width = positions_a_step(host, self.branching.width)
        leaning = race(leanings(shape, width, self.worths), play, len(trials))
        leant = {} if leaning is None else {"leaning": str(leaning)}
        return self._leant(host, nothing, leaning).policy(**notes, **leant, rounds="0", **cost.notes())

    def _leant(self, host: Host, head: Head, leaning: Leaning | None, guidance: float = 0.0) -> Order:
        """The order of a head at a guidance, on top of what the fit leans on.

        Guidance times the head's value is all that an order adds, so the leaning is put into the head.
        """
        if leaning is not None:
            head, value = copy.deepcopy(head), head.linear.weight.double()
            guidance, scale = (guidance, 1.0) if guidance > 0 else (1.0, 0.0)
            worth = leaning.weight(head.shape).to(value.device)
            head.linear.weight.data.copy_(value * scale + worth / guidance)
        return Order(
            aux=host.aux_states,
            guidance=guidance,
            signal=self.signal,
            reward_range=host.reward_range,
            head=head,
        )

    def _played(self, host: Host, problems: Problems, order: Order, denoiser: Denoiser) -> tuple[Tensor, Cost]:
        """[N] float64 rewards under an order, and what they took."""
        width, rows = self.branching.width, self.branching.rows
        parts = batches(host, problems, order, budget=width, rows=rows, denoiser=denoiser)
        rollout = Rollout.joined([part for _, part in parts])
        return rollout.reward.double(), Cost(rollouts=len(problems), calls=int(rollout.nfe.sum()))

    def _best(
        self, host: Host, trials: Problems, taught: Taught, leaning: Leaning | None, denoiser: Denoiser
    ) -> tuple[Order, Cost]:
        """The order to branch under next, and what it took to find it."""
        rewards, cost = {}, Cost()
        for guidance in (0.0, *self._strengths(taught.spread)):
            order = self._leant(host, taught.head, leaning, guidance)
            rewards[guidance], spent = self._played(host, trials, order, denoiser)
            cost += spent
        return self._leant(host, taught.head, leaning, cautious(rewards)), cost


def cautious(rewards: dict[float, Tensor]) -> float:
    """The smallest guidance above 0 whose mean reward is within one standard error of the best; 0 where none is.

    On a few hundred problems a strong one can look best by chance, and branch at states that no good order visits.

    Args:
        rewards: [trials] of every guidance, on the same problems.
    """
    best = max(rewards.values(), key=lambda reward: float(reward.mean()))

    def close(reward: Tensor) -> bool:
        lead = best - reward
        return bool(lead.mean() <= lead.std(correction=0) * len(lead) ** -0.5)

    return min((guidance for guidance, reward in rewards.items() if guidance > 0 and close(reward)), default=0.0)


def _kept(file: Path, notes: dict[str, str]) -> Branches | None:
    """The branches of a round, if their file is there."""
    if not file.is_file():
        return None
    branches, header = Branches.load(file)
    check_same_fit(file, header, notes)
    return branches
