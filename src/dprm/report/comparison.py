"""The comparison: every order's mean reward and its difference to the reference, as points with intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import altair
from altair.utils.schemapi import Undefined

from dprm.evaluate.card import Arm, Card, Estimate
from dprm.evaluate.verdict import EQUAL_CALLS
from dprm.report.charts import INK, LONGEST, PLOT, WIDTH, colour, data, figure, text_width
from dprm.report.colours import LEARNED
from dprm.report.numbers import NOTHING, number, with_interval
from dprm.report.parts import Figure, Section, Table


def comparison(card: Card, colours: dict[str, str]) -> Section:
    """Means, differences and the whole tables."""
    what, drawn = _what_counts(card)
    means = [_point(name, each.mean, each.low, each.high) for name, each in drawn.items()]
    caption = f"{what[0].upper()}{what[1:]}{_with_interval(drawn)}, {card.count:,} problems."
    figures = [intervals(means, colours, what, caption)]
    differing = drawn if any(each.delta is not None for each in drawn.values()) else card.arms
    deltas = [_point(name, each.delta or 0.0, each.delta_low, each.delta_high) for name, each in differing.items()]
    if len(deltas) > 1:
        title = f"{what if differing is drawn else 'mean reward'}, difference to {card.reference}"
        caption = f"{title[0].upper()}{title[1:]}, with its 95 % interval: clear of the line where it is settled."
        figures.append(intervals(deltas, colours, title, caption, zero=True))
    calls = [arm.nfe for arm in card.arms.values()]
    if max(calls) > EQUAL_CALLS * min(calls):
        figures.append(_costs(card, colours))
    seeds = f" under {len(card.seeds)} decode seeds" if len(card.seeds) > 1 else ""
    return Section(
        "Comparison",
        f"Every order decoded the same {card.count:,} problems of {card.split}{seeds} with one model; {_kind(card)}.",
        figures,
        [_table(card, colours), *_metrics_table(card, colours)],
    )


def _what_counts(card: Card) -> tuple[str, Mapping[str, Estimate]]:
    """The share solved where answers are solved or not, else the mean reward; by order."""
    solved = {name: arm.metrics["solved"] for name, arm in card.arms.items() if "solved" in arm.metrics}
    return ("share solved", solved) if len(solved) == len(card.arms) else ("mean reward", card.arms)


def _with_interval(drawn: Mapping[str, Estimate]) -> str:
    return " with its 95 % interval" if any(each.low is not None for each in drawn.values()) else ""


def intervals(
    points: list[dict[str, Any]],
    colours: dict[str, str],
    title: str,
    caption: str,
    zero: bool = False,
    domain: tuple[float, float] | None = None,
) -> Figure:
    """Points with bars, one line an order; `zero` draws the line of no difference; `domain`: the scale, if shared."""
    names = [point["order"] for point in points]
    base = altair.Chart(data(points)).encode(
        y=altair.Y("order:N", sort=None, title=None, axis=_names(names, colours)),
        color=colour("order", colours, names),
    )
    scale = altair.Scale(zero=zero, nice=True, padding=8, domain=list(domain) if domain else Undefined)
    bars = base.mark_rule(strokeWidth=2.5, strokeCap="round").encode(
        x=altair.X("low:Q", title=title, scale=scale, axis=altair.Axis(tickCount=4)), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(x="estimate:Q")
    layers = bars + dots
    if zero:
        layers = altair.Chart(data([{"none": 0}])).mark_rule(stroke=INK, strokeWidth=1).encode(x="none:Q") + layers
    # Long names take room from the plot, and more of it where a reader's font is wide.
    beside = min(LONGEST, max(map(text_width, names)))
    padding = {"left": 10 + beside // 8, "top": 2, "right": 2, "bottom": 2}
    width = WIDTH + 70 - max(190, beside)
    return figure(layers.properties(width=width, height=altair.Step(30), padding=padding), caption)


def _names(names: list[str], colours: dict[str, str]) -> altair.Axis:
    """The names of orders; that of the learned one is bold."""
    bold = [name for name in names if colours[name] == LEARNED]
    weight: Any = "normal"
    if bold:
        weight = {"condition": {"test": f"datum.value === {json.dumps(bold[0])}", "value": "bold"}, "value": "normal"}
    return altair.Axis(ticks=False, domain=False, labelColor=INK, labelFontWeight=weight)


def _costs(card: Card, colours: dict[str, str]) -> Figure:
    rows = [{"order": name, "calls": arm.nfe, "reward": arm.mean} for name, arm in card.arms.items()]
    base = altair.Chart(data(rows)).encode(
        x=altair.X("calls:Q", title="model calls a problem", scale=altair.Scale(zero=False, nice=False, padding=24)),
        y=altair.Y("reward:Q", title="mean reward", scale=altair.Scale(zero=False, nice=False, padding=24)),
    )
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(color=colour("order", colours, list(card.arms)))
    words = base.mark_text(align="left", dx=9, dy=-7).encode(text="order:N")
    chart = (dots + words).properties(width=PLOT, height=220)
    return figure(chart, "Mean reward against its cost in model calls: these orders do not cost the same.")


def _point(name: str, estimate: float, low: float | None, high: float | None) -> dict[str, Any]:
    """A point without an interval has one of no width."""
    return {
        "order": name,
        "estimate": estimate,
        "low": estimate if low is None else low,
        "high": estimate if high is None else high,
    }


def _kind(card: Card) -> str:
    return "differences are paired" if card.paired else "samples are of the order, and independent"


def _table(card: Card, colours: dict[str, str]) -> Table:
    metrics = [metric.name for metric in card.metrics if metric.name != "reward"]
    several = len(card.seeds) > 1
    columns = [
        "order",
        *metrics,
        "reward",
        *(["between seeds"] if several else []),
        f"difference to {card.reference}",
        "calls",
        "time",
        "changed",
        "in ready cells",
        "gate",
    ]
    rows = [_row(name, arm, metrics, several) for name, arm in card.arms.items()]
    return Table("Every order", columns, rows, colours, folded=False)


def _row(name: str, arm: Arm, metrics: list[str], several: bool) -> list[str]:
    learned = arm.policy is not None
    return [
        name,
        *(f"{arm.metrics[metric].mean:.3f}" if metric in arm.metrics else NOTHING for metric in metrics),
        f"{arm.mean:.3f}",
        *([number(arm.spread)] if several else []),
        with_interval(arm.delta, arm.delta_low, arm.delta_high),
        f"{arm.nfe:.1f}",
        NOTHING if arm.time_ratio is None else f"{arm.time_ratio:.2f}×",
        f"{arm.changed:.0%}" if learned else NOTHING,
        f"{arm.ready:.0%}" if learned else NOTHING,
        f"{arm.gate:.2f}" if learned else NOTHING,
    ]


def _metrics_table(card: Card, colours: dict[str, str]) -> list[Table]:
    """Every metric with its intervals; none where there is only the reward."""
    if len(card.metrics) < 2:
        return []
    rows = [
        [name, metric.name, metric.role, *_estimate(arm.metrics[metric.name])]
        for metric in card.metrics
        for name, arm in card.arms.items()
        if metric.name in arm.metrics
    ]
    columns = ["order", "metric", "role", "mean", f"difference to {card.reference}"]
    return [Table("Every metric, with 95 % intervals", columns, rows, colours)]


def _estimate(estimate: Estimate) -> tuple[str, str]:
    return (
        with_interval(estimate.mean, estimate.low, estimate.high, ".3f"),
        with_interval(estimate.delta, estimate.delta_low, estimate.delta_high),
    )
