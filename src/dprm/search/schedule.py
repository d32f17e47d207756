"""How wide a search is, step by step: hierarchical trajectory search narrows from N branches to K survivors.

    width(u) = max(K, ⌈N · d^−(u − first)⌉)        at the prunes u = first + 1, first + 2 + interval, … < last

With the defaults (Prism's) that is 16 branches, 9 after step 4, 4 after step 8, and no prune afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprm.order.checks import check_count, check_number


@dataclass(frozen=True)
class Schedule:
    """When a search is pruned, and to how many branches.

    Attributes:
        width: N, branches at the start. survivors: K, branches at the end.
        first, last: prunes lie strictly between these steps.
        interval: steps between two prunes that have none.
        decay: d, by which the width falls a step.
    """

    width: int = 16
    survivors: int = 4
    first: int = 3
    last: int = 19
    interval: int = 3
    decay: float = 1.8

    def __post_init__(self) -> None:
        check_count("survivors", self.survivors, 1)
        check_count("width", self.width, self.survivors)
        check_count("first", self.first, 0)
        check_count("last", self.last, 0)
        check_count("interval", self.interval, 0)
        check_number("decay", self.decay, 1.0, open_low=True)

    @property
    def prunes(self) -> list[tuple[int, int]]:
        """(step, width after it), until the survivors are reached; none where the width is theirs from the start."""
        prunes, width = list[tuple[int, int]](), self.width
        for step in range(self.first + 1, self.last, self.interval + 1):
            if width == self.survivors:
                break
            width = min(width, max(self.survivors, math.ceil(self.width * self.decay ** (self.first - step))))
            prunes.append((step, width))
        if width > self.survivors:
            raise ValueError(f"{self} ends with {width} branches: expected a later last, or a larger decay")
        return prunes
