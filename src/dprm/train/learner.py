"""Orders that learn while a model is trained: how they begin, what a checkpoint keeps, how they are deployed."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from dprm.host.host import Host
from dprm.order import Gate, Order, Policy
from dprm.order.policy import evidence


def learner(
    host: Host,
    gate: Gate,
    *,
    rule: str = "shortlist_top_m",
    shortlist: tuple[int, int, int] = (8, 64, 4),
    beta: float = 1.0,
    guidance: float = 1.0,
    warm_signal: str | None = None,
    phases: int = 8,
    bins: int = 16,
    baseline: str = "prompt",
) -> Order:
    """An order that knows nothing yet, explores from T_warm on, and learns what a reveal is worth prompt by prompt.

    Args:
        host: gives signal, cell states and the range of rewards.
        gate: (T_warm, T_switch, N_ready), the first two in lessons.
        rule: "shortlist_top_m" or "soft_bon". warm_signal: the order before T_warm, where it is another one.
        phases, bins: of its cells. baseline: "prompt", or "none" to the letter of the paper.
    """
    if rule == "top_m":
        raise ValueError("rule is 'top_m': from an empty table it never leaves the host's order and learns nothing")
    return Order(
        phases=phases,
        bins=bins,
        aux=host.decoding.states,
        signal=host.decoding.signal,
        warm_signal=warm_signal,
        beta=beta,
        guidance=guidance,
        warm=gate.warm,
        switch=gate.switch,
        ready=gate.ready,
        rule=rule,
        shortlist=shortlist,
        explore=True,
        baseline=baseline,
        reward_range=host.reward_range,
    )


def deployed(order: Order, gate: Gate | None = None, **notes: str) -> Policy:
    """What the order decodes by after training: the same values at a step where the gate is open.

    Args:
        gate: that of decoding; None: the order's own. notes: for people.
    """
    policy = order.policy(**notes)
    gate = policy.gate if gate is None else gate
    return replace(policy, gate=gate, step=max(policy.step, math.ceil(gate.switch)))


def check_fresh(order: Order) -> None:
    """Raise if an order that will learn has learned already: what a checkpoint keeps of it would count twice."""
    if order.stats is not None:
        raise ValueError("order has observed rewards already: every training begins with an empty one")


def evidence_of(order: Order) -> dict[str, Tensor]:
    """What a checkpoint keeps of an order that learns."""
    stats = order.stats
    return {} if stats is None else {"moments": stats.moments, "lessons": torch.tensor(order.step)}


def restore_evidence(order: Order, state: dict[str, Tensor]) -> None:
    """Give a fresh order what `evidence_of` kept."""
    if "moments" in state:
        # `auto` is settled by the first observation, and training has groups.
        baseline = "prompt" if order.baseline == "auto" else order.baseline
        stats = evidence(order.cells, order.beta, order.reward_range, baseline)
        order.merge(stats.restore(state["moments"].cpu()))
        order.step = int(state["lessons"])
