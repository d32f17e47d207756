"""The branched head: branch, teach a head on the differences, branch again under its own policy.

The first round branches from the host's order; each later one from the order that the head of the round before gives,
at a strength that does well on a few problems of the fit split. What is branched is kept in a file a round, and the
order of the next round in the policy, so a fit that is killed goes on from there to the same policy.

How strongly a head should correct is not known from its values: the fewer branches it has seen, the smaller they are,
however right their order. So strengths are tried in log odds: strength = guidance · spread, where the spread is that of
the differences the head predicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from dprm.decode.host import Host, Problems
from dprm.decode.loop import Denoiser
from dprm.decode.rollout import Rollout, batches
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.fit.resume import check_same_fit
from dprm.fit.teaching import Taught, teach
from dprm.order import Order, Policy
from dprm.order.head import Head, HeadShape
from dprm.order.noise import mix


@dataclass(frozen=True)
class HeadFit:
    """The branched head estimator.

    Attributes:
        branching: where and how to branch.
        rounds: collections, each on the next problems of the fit split and under the head learned so far.
        trials: problems of the fit split, apart from those branched on, that choose the strength between rounds.
        strengths: what is tried there; 0, the host's order, is always among them.
        reach: neighbours that the head sees on each side.
        signal: the host's signal that the head corrects; `odds` has the order of confidence and room near certainty.
        bold: branch next under the strength of the best mean, instead of the smallest one that is about as good.
    """

    branching: Branching = field(default_factory=Branching)
    rounds: int = 3
    trials: int = 512
    strengths: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
    reach: int = 4
    signal: str = "odds"
    bold: bool = False

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
        name = "bold" if self.bold else "head"
        notes = {"host": host.name, "estimator": name, "problems": problems.digest, "setting": repr(self)}
        trials, rest = problems[: self.trials], problems[self.trials :]
        denoiser = host.denoiser()
        shape = HeadShape(host.aux_states, self.reach)
        order, cost, first = self._start(host, path, notes)
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
            taught = teach(Branches.joined(collected), shape, problems.canvas.device)
            guidance, spent = self._best(host, trials, taught, denoiser)
            order, cost = self._order(host, taught.head, guidance), cost + branches.cost + spent
            known = {"explained": f"{taught.explained:.5f}", "spread": f"{taught.spread:.3g}", "rounds": str(turn + 1)}
            order.policy(**notes, **known, **cost.notes()).save(path)
            if on_round is not None:
                on_round(turn + 1, taught.explained)
        return Policy.load(path)

    def guidances(self, spread: float) -> tuple[float, ...]:
        """The strengths as guidances of a head of this spread; none where it says nothing."""
        return tuple(float(f"{strength / spread:.3g}") for strength in self.strengths) if spread > 0 else ()

    def _start(self, host: Host, path: Path, notes: dict[str, str]) -> tuple[Order, Cost, int]:
        """The order to branch under, what it has cost, and the rounds behind it."""
        if not path.is_file():
            return self._order(host, None, 0.0), Cost(), 0
        policy = Policy.load(path)
        check_same_fit(path, policy.notes, notes)
        return Order.from_policy(policy), Cost.of_notes(policy.notes), int(policy.notes["rounds"])

    def _order(self, host: Host, head: Head | None, guidance: float) -> Order:
        return Order(
            aux=host.aux_states,
            guidance=guidance,
            signal=self.signal,
            reward_range=host.reward_range,
            head=head,
        )

    def _best(self, host: Host, trials: Problems, taught: Taught, denoiser: Denoiser) -> tuple[float, Cost]:
        """The guidance to branch under next, and what it took to find it."""
        rewards, cost = {}, Cost()
        for guidance in (0.0, *self.guidances(taught.spread)):
            order = self._order(host, taught.head, guidance)
            width, rows = self.branching.width, self.branching.rows
            parts = batches(host, trials, order, budget=width, rows=rows, denoiser=denoiser)
            rollout = Rollout.joined([part for _, part in parts])
            rewards[guidance] = rollout.reward.double()
            cost += Cost(rollouts=len(trials), calls=int(rollout.nfe.sum()))
        return bold(rewards) if self.bold else cautious(rewards), cost


def bold(rewards: dict[float, Tensor]) -> float:
    """The guidance with the highest mean reward, the smaller of two equal ones.

    Where several positions are revealed a step, what a choice is worth depends on how the others are made: an order has
    to go all the way to find out.

    Args:
        rewards: [trials] of every guidance, on the same problems.
    """
    return max(rewards, key=lambda guidance: (float(rewards[guidance].mean()), -guidance))


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
