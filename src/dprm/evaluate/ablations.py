"""Ablations: a learned order with one thing taken away, everything else as it was.

    shuffled values   values without their meaning. Of a table: permuted among the cells with evidence, in several ways
                      that the problems take turns in. Of a head: fitted on the same answers, permuted inside states,
                      its strength chosen the same way
    gate only         values off; a shortlist is drawn ∝ ψ, as by an order that explores, and its best by ψ taken
    count only        the value of every cell is how often it was seen, on the scale of the values: reward is off; of a
                      head, how often it was compared
    no states         poorer cells: those that differ in the host's state alone are one, with all their evidence
    no phases         the same of cells that differ in the phase alone
    no shortlist      the m largest scores of the whole canvas
    reward only       the host's signal off: the score is η·guidance·β·R̂ alone, ties to the left
    uniform           values and signal off: a uniformly random order

An order whose values are worth something loses its gain in the first three, and none of the others explains it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from dprm.order import Order, Policy
from dprm.order.signals import Custom, LeftToRight
from dprm.order.values import Table

# Where few cells decide, one permutation may leave them as they were: problems are spread over so many.
PERMUTATIONS = 8

SHUFFLED = "shuffled values"
GATE_ONLY = "gate only"
COUNT_ONLY = "count only"
NO_STATES = "no states"
NO_PHASES = "no phases"
NO_SHORTLIST = "no shortlist"
REWARD_ONLY = "reward only"
UNIFORM = "uniform"


def shuffled_values(order: Order, seed: int = 0) -> Order | None:
    """The values permuted among the cells that have evidence; their evidence, and so the gate, stays.

    It has a table for every permutation; a problem belongs to one of them. None for a head: its control is fitted, not
    made, see `fit.teaching`.
    """
    policy = order.policy()
    if policy.head is not None:
        return None
    known = (policy.table.support > 0).nonzero().squeeze(1)
    generator = torch.Generator().manual_seed(seed)
    values = policy.table.value.repeat(PERMUTATIONS, 1)
    for value in values:
        value[known] = value[known[torch.randperm(len(known), generator=generator)]]
    table = Table(values.flatten(), policy.table.support.repeat(PERMUTATIONS))
    cells = replace(policy.cells, tables=PERMUTATIONS)
    return _acting(replace(policy, cells=cells, table=table, stats=None), order)


def gate_only(order: Order, seed: int = 0) -> Order | None:
    """No values; a shortlist is drawn at every decision."""
    return _acting(replace(order.policy(), guidance=0.0, rule="shortlist_top_m"), order, explore=True)


def count_only(order: Order, seed: int = 0) -> Order | None:
    """R̂ replaced by log(1 + N), shifted and scaled to the mean and spread of the values of cells with evidence."""
    policy = order.policy()
    support = policy.table.support
    known = support > 0
    if int(known.sum()) < 2 or (policy.head is not None and policy.head.counts is None):
        return None
    value, count = policy.table.value, support.log1p()
    spread = count[known].std(correction=0)
    if spread == 0:
        return None
    # The differences that a head predicts have root mean square 1.
    width, middle = (1.0, 0.0) if policy.head is not None else (value[known].std(correction=0), value[known].mean())
    scaled = (count - count[known].mean()) / spread * width + middle
    table = Table(torch.where(known, scaled, 0.0), support)
    return _acting(replace(policy, table=table, head=None, stats=None), order)


def no_states(order: Order, seed: int = 0) -> Order | None:
    """The host's states are not told apart."""
    return _poorer(order, 2)


def no_phases(order: Order, seed: int = 0) -> Order | None:
    """Early and late decisions are not told apart."""
    return _poorer(order, 0)


def _poorer(order: Order, axis: int) -> Order | None:
    """Cells along an axis of the grid share their evidence: R̂ = (1/β) log of the mean of exp(βR̂) over all of it."""
    policy = order.policy()
    shape = (policy.cells.tables, *policy.cells.shape)
    if policy.head is not None or shape[axis + 1] == 1:
        return None
    value, support = (column.view(shape) for column in (policy.table.value, policy.table.support))
    total = support.sum(axis + 1, keepdim=True)
    weight = support / total.clamp(min=1e-300)
    pooled = (weight * (policy.beta * value).exp()).sum(axis + 1, keepdim=True)
    shared = torch.where(total > 0, pooled.clamp(min=1e-300).log() / policy.beta, 0.0)
    table = Table(*(column.expand(shape).reshape(-1).clone() for column in (shared, total)))
    return _acting(replace(policy, table=table, stats=None), order)


def no_shortlist(order: Order, seed: int = 0) -> Order | None:
    """The largest scores of the whole canvas; nothing is drawn."""
    return _acting(replace(order.policy(), rule="top_m"), order)


def reward_only(order: Order, seed: int = 0) -> Order | None:
    """No host signal: ψ = 1 everywhere."""
    return _acting(replace(order.policy(), signal=LeftToRight(slope=0.0).spec()), order)


def uniform(order: Order, seed: int = 0) -> Order | None:
    """A random order."""
    return Order(signal="random")


# None where an order has nothing that could be taken away so.
ABLATIONS: dict[str, Callable[[Order, int], Order | None]] = {
    SHUFFLED: shuffled_values,
    GATE_ONLY: gate_only,
    COUNT_ONLY: count_only,
    NO_STATES: no_states,
    NO_PHASES: no_phases,
    NO_SHORTLIST: no_shortlist,
    REWARD_ONLY: reward_only,
    UNIFORM: uniform,
}


def ablations(order: Order, shuffled: Policy | None = None, seed: int = 0) -> dict[str, Order]:
    """The ablations of a learned order that act otherwise than it does, by what they are.

    Args:
        shuffled: the control that was fitted with a head.
    """
    orders = {SHUFFLED: Order.from_policy(shuffled, rule=order.rule)} if shuffled is not None else {}
    acting = {acts_as(order)}
    for name, ablate in ABLATIONS.items():
        ablated = orders.get(name) or ablate(order, seed)
        if ablated is not None and acts_as(ablated) not in acting:
            acting.add(acts_as(ablated))
            orders[name] = ablated
    return orders


def ablation_name(policy: str, ablation: str) -> str:
    """The arm of an ablation."""
    return f"{policy}, {ablation}"


def acts_as(order: Order) -> tuple[str, bool]:
    """Orders that act alike in every way have the same."""
    return order.policy().digest, order.explore


def _acting(policy: Policy, order: Order, explore: bool | None = None) -> Order:
    """An Order on a changed policy; a signal that is a person's own function is not in the policy."""
    own = order.signal.function if isinstance(order.signal, Custom) and policy.signal == order.signal.spec() else None
    return Order.from_policy(policy, explore=order.explore if explore is None else explore, signal=own)
