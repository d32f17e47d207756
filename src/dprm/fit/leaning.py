"""Where a head starts: the host's order, or that order leaning on one feature.

    score_i = log odds_i + a · φ_i

Much of what an order can gain is often one simple thing: left to right, beside what is already there, one unsure
position at a time. It pays when every decision follows it, so branches, which change one, see little of it. Whole
decodings under a few such orders are therefore compared on trial problems before anything is branched, the weak ones on
few of them. One is taken only if it is three standard errors above the host's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.features import LEFT, TURNS, names

# A heat leaves one in so many, and has twice the problems of the one before.
_LEAVES = 4
_HEATS = (1, 2, 4)
_ERRORS = 3.0
# Fewer problems a share than this cannot tell one order from another.
_LEAST = 8
WORTHS = (10.0, 40.0)


class Leaning(NamedTuple):
    """A feature of `order.features` by name, and what one unit of it is worth in log odds."""

    feature: str
    worth: float

    def __str__(self) -> str:
        return f"{self.worth:g} · {self.feature}"

    def weight(self, aux: int, reach: int) -> Tensor:
        """[F] float64: the weights of a head that says this and nothing else, at guidance 1."""
        listed = names(aux, reach)
        weight = torch.zeros(len(listed), dtype=torch.float64)
        weight[listed.index(self.feature)] = self.worth
        return weight


def leanings(reach: int, single: bool, worths: Sequence[float] = WORTHS) -> list[Leaning]:
    """Those that are tried: from either end, beside what is visible, by margin or entropy, and in turns.

    Args:
        single: one position is revealed a step; turns then say nothing.
    """
    near = [shift for shift in (-2, -1, 1, 2) if abs(shift) <= reach]
    signs = {LEFT: (-1.0, 1.0), "margin": (1.0,), "entropy": (-1.0,)}
    signs |= {f"hidden {shift:+d}": (-1.0,) for shift in near}
    signs |= {} if single else dict.fromkeys(TURNS, (1.0,))
    return [Leaning(name, sign * worth) for name, either in signs.items() for sign in either for worth in worths]


def decodings(tried: int) -> int:
    """Whole decodings a race of so many takes for every problem of its first heat."""
    total = 0
    for heat in _HEATS:
        total += (tried + 1) * heat
        tried = max(1, tried // _LEAVES)
    return total


def problems_for(calls: float, steps: float, tried: int) -> int:
    """How many problems a race of so many may have at this price; 0 where that would be too few to tell anything."""
    each = int(calls / (steps * decodings(tried)))
    return each * sum(_HEATS) if each >= _LEAST else 0


def race(tried: Sequence[Leaning], play: Callable[[Leaning | None, slice], Tensor], problems: int) -> Leaning | None:
    """The leaning that wins, or None for the host's order.

    Args:
        play: rewards of some of the problems under a leaning, or under the host's order.
        problems: how many there are.
    """
    each = problems // sum(_HEATS)
    if not tried or not each:
        return None
    leads: dict[Leaning, list[Tensor]] = {leaning: [] for leaning in tried}
    start = 0
    for heat in _HEATS:
        heat_problems = slice(start, start + heat * each)
        native = play(None, heat_problems).double()
        for leaning in leads:
            leads[leaning].append(play(leaning, heat_problems).double() - native)
        start = heat_problems.stop
        ranked = sorted(leads, key=lambda leaning: -float(torch.cat(leads[leaning]).mean()))
        leads = {leaning: leads[leaning] for leaning in ranked[: max(1, len(ranked) // _LEAVES)]}
    winner, differences = next(iter(leads.items()))
    lead = torch.cat(differences)
    error = float(lead.std()) * len(lead) ** -0.5
    return winner if float(lead.mean()) > _ERRORS * error else None
