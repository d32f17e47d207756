"""What a fit costs and what it gains: the fitted orders of a card against the model calls that their fits took."""

from __future__ import annotations

import math
from collections import Counter
from statistics import mean
from typing import Any

import altair

from dprm.evaluate.card import Arm, Card
from dprm.fit.cost import SAME_PRICE, Cost
from dprm.report.charts import INK, PLOT, SOFT, colour, data, figure
from dprm.report.numbers import number, with_interval
from dprm.report.parts import Figure, Section, Table
from dprm.report.spread import spread

# Estimators keep their colour from page to page.
_COLOURS = {
    name: f"var(--order-{shade})"
    for shade, name in enumerate(("head", "policy_gradient", "branched", "onpolicy", "leaning"), 1)
}
# In pixels: between fits side by side, and at the ends of the scale.
_APART, _MARGIN = 8, 24
# A scale spans at least this factor.
_NARROWEST = 4.0


def fits(card: Card, colours: dict[str, str]) -> Section | None:
    """The gain over the cost; None for a card with fewer than two fits."""
    fitted = fitted_arms(card)
    if len(fitted) < 2:
        return None
    rows = [
        [
            name,
            arm.fit["estimator"],
            *(f"{count:,}" for count in (cost.calls, cost.rollouts, cost.branches, cost.rejoined)),
            number(arm.guidance, "g"),
            with_interval(arm.delta, arm.delta_low, arm.delta_high),
        ]
        for name, arm in fitted.items()
        for cost in [Cost.of_notes(arm.fit)]
    ]
    spent = ["model calls", "rollouts", "branches", "came back"]
    columns = ["order", "estimator", *spent, "guidance", f"gain over {card.reference}"]
    lead = (
        "Every point is a policy: fitted on the fit split, its guidance chosen on the select split, decoded here. "
        "Guidance 0 is the host's own order: nothing was found that could be told from chance."
    )
    tables = [Table("Fits", columns, rows, colours)]
    if averages := [_average(entry) for entry in card.notes.get("seeds", [])]:
        columns = ["estimator", "seeds", f"average gain over {card.reference}", "between seeds", "fits"]
        tables.append(Table("Seeds on the same problems, averaged", columns, averages, colours, folded=False))
    return Section("What fits cost", lead, [_curve(card, fitted)], tables)


def _average(entry: dict[str, Any]) -> list[str]:
    gain = with_interval(entry["delta"], entry["low"], entry["high"])
    names = entry["fits"]
    # Older cards do not know the spread.
    return [entry["estimator"], str(len(names)), gain, number(entry.get("spread")), ", ".join(names)]


def fitted_arms(card: Card) -> dict[str, Arm]:
    """The arms of policies, without their ablations."""
    return {name: arm for name, arm in card.arms.items() if price_of(arm) and arm.ablates is None}


def price_of(arm: Arm) -> int:
    """Model calls that the fit of an arm took; 0 where it has none."""
    return Cost.of_notes(arm.fit).calls


def price_groups(fitted: dict[str, Arm]) -> list[list[Arm]]:
    """Fits of one estimator at about the same price, from the cheapest to the dearest."""
    groups: list[list[Arm]] = []
    for arm in sorted(fitted.values(), key=lambda arm: (arm.fit["estimator"], price_of(arm))):
        first = groups[-1][0] if groups else arm
        same = first.fit["estimator"] == arm.fit["estimator"] and price_of(arm) <= SAME_PRICE * price_of(first)
        if groups and same:
            groups[-1].append(arm)
        else:
            groups.append([arm])
    return sorted(groups, key=_mean_price)


def _mean_price(group: list[Arm]) -> float:
    return mean(price_of(arm) for arm in group)


def _curve(card: Card, fitted: dict[str, Arm]) -> Figure:
    groups = price_groups(fitted)
    lowest, highest = _mean_price(groups[0]), _mean_price(groups[-1])
    # Pixels for a factor e in price.
    pixels = (PLOT - 2 * _MARGIN) / math.log(max(highest / lowest, _NARROWEST))
    wanted = [pixels * math.log(_mean_price(group) / lowest) for group in groups for _ in group]
    positions = iter(spread(wanted, _APART))
    points, means = [], []
    for group in groups:
        members = [_point(arm, lowest * math.exp(next(positions) / pixels)) for arm in group]
        middle = math.exp(mean(math.log(point["calls"]) for point in members))
        means.append({**members[0], "calls": middle, "gain": mean(point["gain"] for point in members)})
        points += members
    prices = Counter(point["estimator"] for point in means)
    joined = [point for point in means if prices[point["estimator"]] > 1]
    caption = f"Gain over {card.reference} with its 95 % interval, against the model calls of the fit."
    if any(len(group) > 1 for group in groups):
        caption += " Fits of about the same price stand side by side."
    if joined:
        caption += " Lines join the means of each price."
    return figure(_drawn(points, joined, card.reference), caption)


def _point(arm: Arm, calls: float) -> dict[str, Any]:
    low, high = arm.delta_low, arm.delta_high
    return {"estimator": arm.fit["estimator"], "calls": calls, "gain": arm.delta, "low": low, "high": high}


def _drawn(points: list[dict[str, Any]], joined: list[dict[str, Any]], reference: str) -> Any:
    estimators = {point["estimator"] for point in points}
    names = [*(name for name in _COLOURS if name in estimators), *sorted(estimators - _COLOURS.keys())]
    colours = {name: _COLOURS.get(name, SOFT) for name in names}
    ends = [min(point["calls"] for point in points), max(point["calls"] for point in points)]
    ticks = [digit * 10**power for power in range(1, 9) for digit in (1, 3)]
    x = altair.X(
        "calls:Q",
        title="model calls of the fit",
        scale=altair.Scale(type="log", nice=False, padding=_MARGIN, domain=_widened(*ends)),
        axis=altair.Axis(format="~s", values=ticks),
    )
    base = altair.Chart(data(points)).encode(x=x, color=colour("estimator", colours, names, legend=True))
    zero = altair.Chart(data([{"none": 0}])).mark_rule(stroke=INK, strokeWidth=1).encode(y="none:Q")
    bars = base.mark_rule(strokeWidth=2.5, strokeCap="round").encode(
        y=altair.Y("low:Q", title=f"gain over {reference}"), y2="high:Q"
    )
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(y="gain:Q")
    line = base.mark_line(strokeWidth=1.5, strokeOpacity=0.55).encode(y="gain:Q").properties(data=data(joined))
    layers = zero + line + bars + dots if joined else zero + bars + dots
    return layers.properties(width=PLOT, height=240)


def _widened(low: float, high: float) -> list[float]:
    """A range of prices, at least so wide that a tick falls into it."""
    wider = max(1.0, math.sqrt(_NARROWEST * low / high))
    return [low / wider, high * wider]
