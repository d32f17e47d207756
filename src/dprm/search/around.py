"""A host whose answers are searched for: every order of a comparison then decodes all branches of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from dprm.host.host import Host
from dprm.host.rollout import Decode
from dprm.order.order import Order
from dprm.order.policy import Policy, evidence
from dprm.search.ranks import with_ranks
from dprm.search.schedule import Schedule
from dprm.search.search import Search
from dprm.search.verify import Likelihood, Verifier

Some = TypeVar("Some", bound=Host)
PLAIN, FRESH, DRAWN = "no search", "dprm, fresh table", "dprm, shortlist only"
READY = 64


def fresh_order(
    warm: float = 6, switch: float = 22, cells: tuple[int, int, int] = (8, 16, 1), baseline: str = "auto"
) -> Order:
    """The paper's settings for a table that is learned within one question; the gate counts steps of the search."""
    phases, bins, aux = cells
    gate: dict[str, Any] = {"warm": warm, "switch": switch, "ready": READY}
    how: dict[str, Any] = {"rule": "soft_bon", "shortlist": (8, 64, 4), "explore": True, "baseline": baseline}
    return Order(phases=phases, bins=bins, aux=aux, **gate, **how)


def searched(host: Some, schedule: Schedule | None = None, verifier: Verifier | None = None, **setting: object) -> Some:
    """The host with a search around it, metrics for its survivors by rank, and the arms that a search is compared with.

    Args:
        schedule: how wide; None: Prism's.
        verifier: None: the likelihood of an answer under the host's own model.
        setting: other fields of `Search`.
    """
    base = Search(verifier or Likelihood(), schedule or Schedule(), **setting)  # type: ignore[arg-type]
    other = with_ranks(host, base.schedule.survivors)
    other.way = Searching(base)
    # Fresh as well: the steps of the search open its gate, from which on it draws.
    drawn = replace(base, order=Order.from_policy(fresh_order().policy(), guidance=0.0, explore=True), fresh=True)
    other.ways = {PLAIN: Decode(), FRESH: replace(base, order=fresh_order(), fresh=True), DRAWN: drawn}
    return other


class Searching:
    """`Host.way` of a searched host: every order decodes all branches of a search."""

    def __init__(self, base: Search):
        self.base = base

    def __call__(self, order: Order | None) -> Search:
        return replace(self.base, order=order)

    def warm(self, policy: Policy) -> Search | None:
        """Fresh tables that start with what a policy's table has seen of other questions; None where it has none.

        The evidence is faded until its fullest cell is just ready, so that what a question says itself soon outweighs
        it. Scores are taken relative to the other branches of their question, as the policy's rewards were to the other
        answers to theirs: how hard a question is, is not carried over.
        """
        order = fresh_order(0, 0, policy.cells.shape, baseline="prompt")
        own = order.policy()
        fitting = evidence(own.cells, own.beta, own.reward_range, "prompt")
        if policy.stats is None or policy.stats.schema != fitting.schema:
            return None
        fullest = max(1, int(policy.stats.count.max()))
        return replace(self.base, order=order, fresh=True, prior=policy.stats, weight=min(1.0, READY / fullest))
