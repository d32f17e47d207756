"""What a fit costs and what it gains: the fitted orders of a card against the paths that their fits took."""

from __future__ import annotations

import altair

from dprm.evaluate.card import Arm, Card
from dprm.fit.cost import Cost
from dprm.report.charts import INK, WIDTH, data, figure
from dprm.report.parts import Figure, Section, Table

# Estimators keep their colour from page to page.
_COLOURS = {
    name: f"var(--order-{place})"
    for place, name in enumerate(("head", "policy_gradient", "branched", "onpolicy", "leaning"), 1)
}
_ASIDE = 1.07


def fits(card: Card, colours: dict[str, str]) -> Section | None:
    """The gain over the cost; None for a card with fewer than two fits."""
    fitted = fitted_arms(card)
    if len(fitted) < 2:
        return None
    rows = [
        [
            name,
            arm.fit["estimator"],
            *(f"{int(arm.fit.get(what, 0)):,}" for what in ("rollouts", "branches", "rejoined", "calls")),
            f"{arm.guidance:g}",
            f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]",
        ]
        for name, arm in fitted.items()
    ]
    spent = ["rollouts", "branches", "came back", "model calls"]
    columns = ["order", "estimator", *spent, "guidance", f"gain over {card.reference}"]
    lead = (
        "Every point is a policy: fitted on the fit split, its guidance chosen on the select split, decoded here. "
        "Guidance 0 is the host's own order: nothing was found that could be told from chance."
    )
    return Section("What fits cost", lead, [_curve(card, fitted)], [Table("Fits", columns, rows, colours)])


def fitted_arms(card: Card) -> dict[str, Arm]:
    """The arms of policies, without their ablations."""
    return {name: arm for name, arm in card.arms.items() if paths_of(arm) and arm.ablates is None}


def paths_of(arm: Arm) -> int:
    """Continuations, or whole decodings for an estimator that makes no others; those that choose settings left out."""
    cost = Cost.of_notes(arm.fit)
    return cost.branches or cost.rollouts


def _curve(card: Card, fitted: dict[str, Arm]) -> Figure:
    names = [name for name in _COLOURS if any(arm.fit["estimator"] == name for arm in fitted.values())]
    points = [
        {
            "estimator": arm.fit["estimator"],
            # Estimators of one price stand side by side.
            "paths": paths_of(arm) * _ASIDE ** names.index(arm.fit["estimator"]),
            "gain": arm.delta,
            "low": arm.delta_low,
            "high": arm.delta_high,
        }
        for arm in fitted.values()
    ]
    ticks = [digit * 10**power for power in range(1, 9) for digit in (1, 3)]
    scale = altair.Scale(domain=names, range=[_COLOURS[name] for name in names])
    base = altair.Chart(data(points)).encode(
        x=altair.X(
            "paths:Q",
            title="continuations or rollouts of the fit",
            scale=altair.Scale(type="log", nice=False, padding=24),
            axis=altair.Axis(format="~s", values=ticks),
        ),
        color=altair.Color("estimator:N", scale=scale, legend=altair.Legend(title=None)),
    )
    zero = altair.Chart(data([{"none": 0}])).mark_rule(stroke=INK, strokeWidth=1).encode(y="none:Q")
    bars = base.mark_rule(strokeWidth=2.5, strokeCap="round").encode(
        y=altair.Y("low:Q", title=f"gain over {card.reference}"), y2="high:Q"
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(y="gain:Q")
    caption = f"Paired gain over {card.reference} with its 95 % interval, over what the fit took."
    return figure((zero + bars + dots).properties(width=WIDTH - 70, height=240), caption)
