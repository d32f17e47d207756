"""The choice on the select split: which setting of a policy is taken over the host's order, if any.

Of k settings the one with the largest mean is taken among those whose interval of the difference to the host's order,
at the level 1 − 0.05/k, is above 0. Otherwise none is, and the host's own order stays: the best of several means is
above 0 by chance alone. Settings that cost more model calls come last: one is taken only where no other is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from torch import Tensor

from dprm.evaluate.bootstrap import Interval, difference_interval
from dprm.order.checks import check_number


@dataclass(frozen=True)
class Chosen:
    """What was chosen, None for the host's own order, and the corrected interval of every setting."""

    setting: str | None
    intervals: dict[str, Interval]


def choose(
    rewards: Mapping[str, Tensor],
    control: Tensor,
    resamples: int = 5000,
    seed: int = 0,
    costly: Collection[str] = (),
    *,
    paired: bool = True,
    groups: Tensor | None = None,
) -> Chosen:
    """Choose among settings by their rewards [n] on the select split, against those of the host's order [n].

    Args:
        costly: the settings that come last.
        paired: as the host declares. groups: [n], problems that belong together.
    """
    if not rewards:
        raise ValueError("rewards is empty: there is no setting to choose from")
    level = 1 - 0.05 / len(rewards)
    intervals = {
        name: difference_interval(
            reward, control, paired=paired, resamples=resamples, level=level, seed=seed, groups=groups
        )
        for name, reward in rewards.items()
    }
    passing = [name for name, interval in intervals.items() if interval.above_zero]
    best = max(passing, key=lambda name: (name not in costly, intervals[name].estimate), default=None)
    return Chosen(best, intervals)


def problems_needed(gain: float, variance: float, power: float = 0.8, tries: int = 1) -> int:
    """How many paired problems a gain takes to be seen, n = (z(1 − 0.025/k) + z(power))² · variance / gain².

    Args:
        gain: mean difference. variance: of the differences; for solved or not, the discordant share − gain².
        tries: k, the settings that are compared.
    """
    check_number("gain", gain, 0, open_low=True)
    check_number("variance", variance, 0)
    check_number("power", power, 0, 1, open_low=True)
    z = NormalDist().inv_cdf
    return int((z(1 - 0.025 / tries) + z(power)) ** 2 * variance / gain**2) + 1
