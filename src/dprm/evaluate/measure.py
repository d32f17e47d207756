"""From rollouts to the arms of a card: means, paired differences, what was changed, trusted and selected."""

from __future__ import annotations

from typing import Any

from dprm.evaluate.bootstrap import mean_interval, paired_interval
from dprm.evaluate.card import Arm
from dprm.evaluate.diagnostics import differing, residual_coverage, selections
from dprm.host.rollout import Rollout
from dprm.order import Order


def measure(
    found: dict[str, Rollout],
    orders: dict[str, Order],
    reference: str,
    solved_at: float = 1.0,
    *,
    fits: dict[str, dict[str, str]] | None = None,
    ablates: dict[str, str] | None = None,
    resamples: int = 5000,
    seed: int = 0,
) -> dict[str, Arm]:
    """One arm for every rollout, paired to the reference.

    Args:
        found: rollouts of the same problems. orders: those behind them; a control may have none.
        fits: for learned orders, what their policies say of their fit. ablates: for ablations, the arm they are of.
    """
    arms = {}
    for name, rollout in found.items():
        arm = _arm(rollout, None if name == reference else found[reference], solved_at, resamples, seed)
        arm.fit = (fits or {}).get(name, {})
        if name in orders:
            _add_order(arm, orders[name], rollout)
        if ablates and name in ablates:
            whole = paired_interval(found[ablates[name]].reward, rollout.reward, resamples, seed=seed)
            arm.ablates, (arm.gap, arm.gap_low, arm.gap_high) = ablates[name], whole
        arms[name] = arm
    return arms


def _arm(rollout: Rollout, control: Rollout | None, solved_at: float, resamples: int, seed: int) -> Arm:
    mean = mean_interval(rollout.reward, resamples, seed=seed)
    paired: dict[str, Any] = dict.fromkeys(("delta", "delta_low", "delta_high"))
    if control is not None:
        paired = dict(zip(paired, paired_interval(rollout.reward, control.reward, resamples, seed=seed)))
        paired["differs"] = float(differing(rollout, control).double().mean())
    return Arm(
        mean=mean.estimate,
        low=mean.low,
        high=mean.high,
        solved=float((rollout.reward >= solved_at).double().mean()),
        nfe=float(rollout.nfe.double().mean()),
        changed=float(rollout.changed.sum() / rollout.decisions.sum().clamp(min=1)),
        ready=float(rollout.ready.sum() / rollout.picks.sum().clamp(min=1)),
        gate=float(rollout.gate.sum() / rollout.picks.sum().clamp(min=1)),
        seconds=float(rollout.seconds.double().mean()),
        diagnostics=selections(rollout).facts(),
        **paired,
    )


def _add_order(arm: Arm, order: Order, rollout: Rollout) -> None:
    """What only the order knows."""
    known = bool((order.table().support > 0).any())
    if order.stats is not None or known:
        arm.policy, arm.guidance = order.policy().digest, order.guidance
    if known:
        arm.diagnostics |= residual_coverage(rollout, order).facts()
