"""Where a fit starts: the host's order, or that order leaning on one feature.

    score_i = log odds_i + a · φ_i

Much of what an order can gain is often one simple thing: left to right, beside what is already there, one unsure
position at a time. It pays when every decision follows it, so branches, which change one, see little of it. Whole
decodings under a few such orders are therefore compared on the trial problems before anything is branched, the weak
ones on few of them. One is taken only if it is three standard errors above the host's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.basis import LEFT, names
from dprm.order.head import HeadShape
from dprm.order.pace import TURNS

# A heat keeps one in so many, and has twice the problems of the one before.
_KEPT = 4
_HEATS = (1, 2, 4)
_ERRORS = 3.0


class Leaning(NamedTuple):
    """A feature of `order.basis` by name, and what one unit of it is worth in log odds."""

    feature: str
    worth: float

    def __str__(self) -> str:
        return f"{self.worth:g} · {self.feature}"

    @classmethod
    def read(cls, text: str) -> Leaning:
        """From what `str` gave."""
        worth, feature = text.split(" · ", 1)
        return cls(feature, float(worth))

    def weight(self, shape: HeadShape) -> Tensor:
        """[F] float64: the weights of a head that says this and nothing else, at guidance 1."""
        named = names(shape.aux, shape.reach)
        found = torch.zeros(len(named), dtype=torch.float64)
        found[named.index(self.feature)] = self.worth
        return found


def leanings(shape: HeadShape, width: int, worths: Sequence[float]) -> list[Leaning]:
    """Those that are tried: from either end, beside what is visible, by margin or entropy, and in turns.

    Args:
        width: positions a step; where it is one, turns say nothing.
    """
    near = [shift for shift in (-2, -1, 1, 2) if abs(shift) <= shape.reach]
    signs = {LEFT: (-1.0, 1.0), "margin": (1.0,), "entropy": (-1.0,)}
    signs |= {f"hidden {shift:+d}": (-1.0,) for shift in near}
    signs |= {turn: (1.0,) for turn in TURNS if width > 1}
    return [Leaning(name, sign * worth) for name, either in signs.items() for sign in either for worth in worths]


def race(tried: Sequence[Leaning], play: Callable[[Leaning | None, slice], Tensor], problems: int) -> Leaning | None:
    """The leaning that wins, or None for the host's order.

    Args:
        play: rewards of some of the problems under a leaning, or under the host's order.
        problems: how many there are.
    """
    each = problems // sum(_HEATS)
    if not tried or not each:
        return None
    leads: dict[Leaning, list[Tensor]] = {one: [] for one in tried}
    start = 0
    for heat in _HEATS:
        part = slice(start, start + heat * each)
        native = play(None, part).double()
        for one in leads:
            leads[one].append(play(one, part).double() - native)
        start = part.stop
        order = sorted(leads, key=lambda one: -float(torch.cat(leads[one]).mean()))
        leads = {one: leads[one] for one in order[: max(1, len(order) // _KEPT)]}
    best, parts = next(iter(leads.items()))
    lead = torch.cat(parts)
    error = float(lead.std()) * len(lead) ** -0.5
    return best if float(lead.mean()) > _ERRORS * error else None
