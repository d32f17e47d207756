"""Whether a preference moves what it weighs, every time: its own metric against the host's order and the opposite one.

    response of arm p to control q, in replication s  =  mean over problems of (own metric under p − under q)

An arm's own metric is the benefit that its preference gives more than half of the weight; of a balanced preference, its
reward. Opposite is the order for the preference that gives this metric the least weight, of several all. Replications
are the decode seeds; where values are not drawn and every seed would give the same, the samples of a group, such as the
masks of a cell. Each has a bootstrap of its own, beside that of all together. Shapes: S replications, N problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from dprm.evaluate.bootstrap import Interval, difference_interval
from dprm.evaluate.card import Card
from dprm.evaluate.outcomes import Outcomes
from dprm.host.metrics import Preference

REWARD = "reward"


@dataclass(frozen=True)
class Response:
    """How far an arm moves its own metric against a control.

    Attributes:
        arm, own, control: names; own is a metric or "reward". opposite: the control is an opposite preference's.
        each: of every replication; empty where there is only one. together: of all.
    """

    arm: str
    own: str
    control: str
    opposite: bool
    each: list[Interval]
    together: Interval

    @property
    def always(self) -> bool:
        """There are replications, and every interval of them is above 0."""
        return bool(self.each) and all(interval.above_zero for interval in self.each)


def responses(card: Card, outcomes: Outcomes) -> list[Response]:
    """Of every learned order of a card against the reference, random order if there, and the opposite preference's."""
    wanted = {
        name: Preference.read(arm.fit["preference"])
        for name, arm in card.arms.items()
        if arm.ablates is None and arm.fit.get("preference")
    }
    found = []
    for name, preference in wanted.items():
        own = own_metric(preference)
        values = {arm: _values(card, outcomes, arm, own, preference) for arm in card.arms}
        opposite = opposites(own, wanted)
        for control in dict.fromkeys([card.reference, *(("random",) if "random" in card.arms else ()), *opposite]):
            if control == name:
                continue
            pairs = list(_replications(outcomes.group, values[name], values[control]))
            each = [_interval(card, *pair, turn) for turn, pair in enumerate(pairs)]
            whole = values[name].mean(0), values[control].mean(0), outcomes.group
            found.append(Response(name, own, control, control in opposite, each, _interval(card, *whole, 0)))
    return found


def own_metric(preference: Preference) -> str:
    """The benefit with more than half of the weight; without one, the reward."""
    return next((name for name, weight in preference.weights.items() if weight > 0.5), REWARD)


def opposites(own: str, wanted: dict[str, Preference]) -> list[str]:
    """The arms of the preferences with a metric of their own that give this one the least weight; one a preference."""
    ends: dict[str, str] = {}
    for arm, preference in wanted.items():
        if own_metric(preference) not in (REWARD, own):
            ends.setdefault(str(preference), arm)
    if own == REWARD or not ends:
        return []
    least = min(wanted[arm].weights[own] for arm in ends.values())
    return [arm for arm in ends.values() if wanted[arm].weights[own] == least]


def _values(card: Card, outcomes: Outcomes, arm: str, own: str, preference: Preference) -> Tensor:
    """[S,N] float64 of an arm, in a metric or in the reward of a preference."""
    scores = outcomes.scores[arm]
    if own == REWARD:
        return preference.reward(scores.flatten(0, 1), card.judged).view(scores.shape[:2])
    return scores[..., [metric.name for metric in card.judged].index(own)].double()


def _replications(group: Tensor, own: Tensor, control: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Values [n], those of the control [n] and groups [n] of every replication, if there are several."""
    if len(own) > 1:
        yield from ((each, other, group) for each, other in zip(own, control, strict=True))
        return
    sizes = set(Counter(group.tolist()).values())
    if len(sizes) > 1 or sizes == {1}:
        return
    rows = group.argsort(stable=True).view(-1, *sizes)
    yield from ((own[0, column], control[0, column], group[column]) for column in rows.T)


def _interval(card: Card, own: Tensor, control: Tensor, group: Tensor, turn: int) -> Interval:
    seed = card.seeds[turn] if turn < len(card.seeds) else card.seeds[0] + turn
    return difference_interval(own, control, paired=card.paired, resamples=card.resamples, seed=seed, groups=group)
