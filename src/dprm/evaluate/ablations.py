"""Ablations: a learned order with one thing taken away, everything else as it was.

    shuffled values   the values of cells with evidence, permuted among them: the same strengths, no meaning
    gate/count only   values off; a shortlist is drawn ∝ ψ, as by an order that explores, and its best by ψ taken
    no shortlist      the m largest scores of the whole canvas
    reward only       the host's signal off: the score is η·guidance·β·R̂ alone, ties to the left
    uniform           values and signal off: a uniformly random order

An order whose values are worth something loses its gain in the first two, and none of the others explains it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import torch

from dprm.order import Order, Policy
from dprm.order.signals import Custom, LeftToRight
from dprm.order.values import Table

SHUFFLED = "shuffled values"
GATE_ONLY = "gate/count only"
NO_SHORTLIST = "no shortlist"
REWARD_ONLY = "reward only"
UNIFORM = "uniform"


def shuffled_values(order: Order, seed: int = 0) -> Order:
    """The values permuted among the cells that have evidence; their evidence, and so the gate, stays.

    Of a head the weights of its features are permuted, and the channels that its network sees with: the same head,
    looking at the wrong things.
    """
    policy = order.policy()
    generator = torch.Generator().manual_seed(seed)
    if policy.head is not None:
        head = copy.deepcopy(policy.head)
        seen = [head.linear.weight, *([] if head.network is None else [head.network.around.weight])]
        for weight in seen:
            weight.copy_(weight[:, torch.randperm(weight.shape[1], generator=generator)])
        return _acting(replace(policy, head=head), order)
    value = policy.table.value.clone()
    known = (policy.table.support > 0).nonzero().squeeze(1)
    value[known] = value[known[torch.randperm(len(known), generator=generator)]]
    return _acting(replace(policy, table=Table(value, policy.table.support), stats=None), order)


def gate_only(order: Order, seed: int = 0) -> Order:
    """No values; a shortlist is drawn at every decision."""
    return _acting(replace(order.policy(), guidance=0.0, rule="shortlist_top_m"), order, explore=True)


def no_shortlist(order: Order, seed: int = 0) -> Order:
    """The largest scores of the whole canvas; nothing is drawn."""
    return _acting(replace(order.policy(), rule="top_m"), order)


def reward_only(order: Order, seed: int = 0) -> Order:
    """No host signal: ψ = 1 everywhere."""
    return _acting(replace(order.policy(), signal=LeftToRight(slope=0.0).spec()), order)


def uniform(order: Order, seed: int = 0) -> Order:
    """A random order."""
    return Order(signal="random")


ABLATIONS: dict[str, Callable[[Order, int], Order]] = {
    SHUFFLED: shuffled_values,
    GATE_ONLY: gate_only,
    NO_SHORTLIST: no_shortlist,
    REWARD_ONLY: reward_only,
    UNIFORM: uniform,
}


def with_ablations(
    orders: dict[str, Order], learned: list[str], seed: int = 0
) -> tuple[dict[str, Order], dict[str, str]]:
    """The orders, with the ablations of those that are learned.

    An ablation that would act exactly as an order that is there already is left out: `no shortlist` of a policy that
    takes the largest scores anyway, `uniform` beside `random`.

    Returns:
        all orders by name, and for every ablation the order that it takes something away from.
    """
    found, of = dict(orders), {}
    acting = {_identity(order) for order in orders.values()}
    for name in learned:
        for what, ablate in ABLATIONS.items():
            order = ablate(orders[name], seed)
            if _identity(order) not in acting:
                acting.add(_identity(order))
                title = ablation_name(name, what)
                found[title], of[title] = order, name
    return found, of


def ablation_name(policy: str, what: str) -> str:
    """The arm of an ablation."""
    return f"{policy}, {what}"


def _identity(order: Order) -> tuple[str, bool]:
    """Orders that act alike in every way have the same."""
    return order.policy().digest, order.explore


def _acting(policy: Policy, order: Order, explore: bool | None = None) -> Order:
    """An Order on a changed policy; a signal that is a person's own function is not in the policy."""
    own = order.signal.function if isinstance(order.signal, Custom) and policy.signal == order.signal.spec() else None
    return Order.from_policy(policy, explore=order.explore if explore is None else explore, signal=own)
