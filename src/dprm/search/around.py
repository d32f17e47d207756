"""A host whose answers are searched for: every order of a comparison then decodes all branches of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from dprm.host.host import Host
from dprm.host.rollout import Decode
from dprm.order.order import Order
from dprm.search.ranks import with_ranks
from dprm.search.schedule import Schedule
from dprm.search.search import Search
from dprm.search.verify import Likelihood, Verifier

Some = TypeVar("Some", bound=Host)
PLAIN, FRESH, DRAWN = "no search", "dprm, fresh table", "dprm, shortlist only"


def fresh_order(warm: float = 6, switch: float = 22) -> Order:
    """The paper's settings for a table that is learned within one question; the gate counts steps of the search."""
    return Order(8, 16, warm=warm, switch=switch, ready=64, rule="soft_bon", shortlist=(8, 64, 4), explore=True)


def searched(host: Some, schedule: Schedule | None = None, verifier: Verifier | None = None, **setting: object) -> Some:
    """The host with a search around it, metrics for its survivors by rank, and the arms that a search is compared with.

    Args:
        schedule: how wide; None: Prism's.
        verifier: None: the likelihood of an answer under the host's own model.
        setting: other fields of `Search`.
    """
    base = Search(verifier or Likelihood(), schedule or Schedule(), **setting)  # type: ignore[arg-type]
    other = with_ranks(host, base.schedule.survivors)
    other.way = _Searching(base)
    drawn = replace(base, order=Order.from_policy(fresh_order().policy(), guidance=0.0, explore=True))
    other.ways = {PLAIN: Decode(), FRESH: replace(base, order=fresh_order(), fresh=True), DRAWN: drawn}
    return other


class _Searching:
    """`Host.way` of a searched host."""

    def __init__(self, base: Search):
        self.base = base

    def __call__(self, order: Order | None) -> Search:
        return replace(self.base, order=order)
