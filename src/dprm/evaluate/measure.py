"""From rollouts to the arms of a card: what was called, changed, trusted and selected; what it earned: `estimates`.

Numbers are taken over all decode seeds together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import percentile_interval, resampled_means, spread, student_interval
from dprm.evaluate.card import Arm, Estimate
from dprm.evaluate.diagnostics import differing, residual_coverage, selections, settled_share, stored_coverage
from dprm.host.host import Host, Problems
from dprm.host.metrics import SET
from dprm.host.rollout import Rollout
from dprm.order.order import Order

# Of the model calls of a problem, where problems differ in them.
CALL_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Resamples of outputs for the metrics of all of them together.
SET_RESAMPLES = 1000


def measured(rollouts: Sequence[Rollout], control: Sequence[Rollout], order: Order | None) -> Arm:
    """An arm that does not know yet what it earned.

    Args:
        rollouts: one a decode seed. control: those of the reference; the same ones for the reference itself.
        order: what decoded; None where it was another way of answering.
    """
    whole = Rollout.joined(rollouts)
    picks = whole.picks.sum().clamp(min=1)
    seconds, usual = (float(each.seconds.double().mean()) for each in (whole, Rollout.joined(control)))
    arm = Arm(
        mean=float("nan"),
        nfe=float(whole.nfe.double().mean()),
        calls={kind: float(column.double().mean()) for kind, column in whole.calls.items()},
        seconds=seconds,
        time_ratio=seconds / usual if usual > 0 else None,
        changed=float(whole.changed.sum() / whole.decisions.sum().clamp(min=1)),
        ready=float(whole.ready.sum() / picks),
        gate=float(whole.gate.sum() / picks),
        diagnostics={**selections(whole).facts(), **_calls_by_problem(whole)},
    )
    if rollouts is not control:
        different = torch.cat([differing(rollout, other) for rollout, other in zip(rollouts, control, strict=True)])
        arm.differs = float(different.double().mean())
    if order is not None:
        _add_policy(arm, order, whole)
    return arm


def _calls_by_problem(rollout: Rollout) -> dict[str, list[float]]:
    """Quantiles of the model calls of a problem at CALL_SHARES; nothing where all problems take as many."""
    calls = rollout.nfe.double()
    if not len(calls) or bool((calls == calls[0]).all()):
        return {}
    return {"calls by problem": calls.quantile(calls.new_tensor(CALL_SHARES)).tolist()}


def _add_policy(arm: Arm, order: Order, rollout: Rollout) -> None:
    """What only the order knows."""
    supported = bool((order.table().support > 0).any())
    if supported or order.stats is not None or order.head is not None:
        arm.policy, arm.guidance = order.policy().digest, order.guidance
    if supported:
        arm.diagnostics |= residual_coverage(rollout, order).facts() | stored_coverage(order)
    if order.head is not None and order.head.counts is None:
        arm.ready = arm.gate = 0.0  # Nobody knows what it was fitted on: no decision is known to be like it.
    if order.stats is not None:
        arm.diagnostics["settled"] = settled_share(order.stats, order.table())


def set_estimates(
    host: Host, problems: Problems, rollouts: Sequence[Rollout], control: Sequence[Rollout]
) -> dict[str, Estimate]:
    """The metrics of all outputs together, by name.

    Where they are made of means over the outputs, outputs are resampled inside every decode seed, and seeds averaged.
    Otherwise there are intervals over the decode seeds, if there are several.
    """
    names = [metric.name for metric in host.metrics if metric.role == SET]
    if not names:
        return {}
    terms = [host.set_terms(problems, rollout.tokens) for rollout in rollouts]
    if all(each is not None for each in terms):
        usual_terms = terms if rollouts is control else [host.set_terms(problems, each.tokens) for each in control]
        return _of_terms(host, names, terms, None if rollouts is control else usual_terms)  # type: ignore[arg-type]
    own, other = ([host.set_scores(problems, rollout.tokens) for rollout in seeds] for seeds in (rollouts, control))
    estimates = {}
    for name in names:
        values = torch.tensor([judged[name] for judged in own], dtype=torch.float64)
        usual = torch.tensor([judged[name] for judged in other], dtype=torch.float64)
        estimate = _over_seeds(values)
        if rollouts is not control:
            delta = _over_seeds(values - usual)
            estimate = replace(estimate, delta=delta.mean, delta_low=delta.low, delta_high=delta.high)
        estimates[name] = estimate
    return estimates


def _of_terms(
    host: Host, names: Sequence[str], terms: Sequence[Tensor], usual: Sequence[Tensor] | None
) -> dict[str, Estimate]:
    """Estimates of the metrics that terms [N,F] of every decode seed make; usual: those of the reference."""

    def seen(each: Sequence[Tensor], shift: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """By metric the value of every seed [S], and the mean over seeds of resampled values [R]."""
        whole = host.set_of(torch.stack([part.double().mean(0) for part in each]))
        draws = [host.set_of(resampled_means(part, SET_RESAMPLES, 2 * s + shift)) for s, part in enumerate(each)]
        return whole, {name: torch.stack([draw[name] for draw in draws]).mean(0) for name in names}

    own, own_draws = seen(terms, 0)
    # Outputs of the same problem are drawn together; where they belong to the order, each by itself.
    other, other_draws = (own, own_draws) if usual is None else seen(usual, 0 if host.paired else 1)
    estimates = {}
    for name in names:
        mean, low, high = percentile_interval(float(own[name].mean()), own_draws[name])
        estimate = Estimate(mean, low, high, spread=spread(own[name]) if len(terms) > 1 else None)
        if usual is not None:
            difference = float(own[name].mean() - other[name].mean())
            delta = percentile_interval(difference, own_draws[name] - other_draws[name])
            estimate = replace(estimate, delta=delta.estimate, delta_low=delta.low, delta_high=delta.high)
        estimates[name] = estimate
    return estimates


def _over_seeds(values: Tensor) -> Estimate:
    """The mean of one number a decode seed [S], with an interval where there are several."""
    if len(values) == 1:
        return Estimate(float(values))
    mean, low, high = student_interval(values)
    return Estimate(mean, low, high, spread=spread(values))
