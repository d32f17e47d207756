"""The comparison: every order's mean reward and its paired difference to the reference, as points with intervals."""

from __future__ import annotations

from typing import Any

import altair

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.verdict import EQUAL_CALLS
from dprm.report.charts import INK, LONGEST, PLOT, WIDTH, colour, data, figure, text_width
from dprm.report.parts import Figure, Section, Table


def comparison(card: Card, colours: dict[str, str]) -> Section:
    """Means, differences and the whole table."""
    means = [_point(name, arm.mean, arm.low or arm.mean, arm.high or arm.mean) for name, arm in card.arms.items()]
    deltas = [
        _point(name, arm.delta or 0.0, arm.delta_low or 0.0, arm.delta_high or 0.0) for name, arm in card.arms.items()
    ]
    figures = [
        intervals(means, colours, "mean reward", f"Mean reward with its 95 % interval, {card.count:,} problems.")
    ]
    if len(deltas) > 1:
        caption = f"Difference to {card.reference}, with its 95 % interval: clear of the line where it is settled."
        figures.append(intervals(deltas, colours, f"difference to {card.reference}", caption, zero=True))
    calls = [arm.nfe for arm in card.arms.values()]
    if max(calls) > EQUAL_CALLS * min(calls):
        figures.append(_costs(card, colours))
    return Section(
        "Comparison",
        f"Every order decoded the same {card.count:,} problems of {card.split} with one model; {_kind(card)}.",
        figures,
        [_table(card, colours)],
    )


def intervals(
    points: list[dict[str, Any]], colours: dict[str, str], title: str, caption: str, zero: bool = False
) -> Figure:
    """Points with bars, one line an order; `zero` draws the line of no difference."""
    names = [point["order"] for point in points]
    base = altair.Chart(data(points)).encode(
        y=altair.Y("order:N", sort=None, title=None, axis=altair.Axis(ticks=False, domain=False, labelColor=INK)),
        color=colour("order", colours, names),
    )
    scale = altair.Scale(zero=zero, nice=True, padding=8)
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


def _point(name: str, estimate: float, low: float, high: float) -> dict[str, Any]:
    return {"order": name, "estimate": estimate, "low": low, "high": high}


def _kind(card: Card) -> str:
    return "differences are paired" if card.paired else "samples are of the order, and independent"


def _table(card: Card, colours: dict[str, str]) -> Table:
    metrics = [metric.name for metric in card.metrics if metric.name != "reward"]
    columns = [
        "order",
        *metrics,
        "reward",
        f"difference to {card.reference}",
        "calls",
        "changed",
        "in ready cells",
        "gate",
    ]
    rows = [_row(name, arm, metrics) for name, arm in card.arms.items()]
    return Table("Every order", columns, rows, colours, folded=False)


def _row(name: str, arm: Arm, metrics: list[str]) -> list[str]:
    difference = "–" if arm.delta is None else f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]"
    learned = arm.policy is not None
    return [
        name,
        *(f"{arm.metrics[metric].mean:.3f}" if metric in arm.metrics else "–" for metric in metrics),
        f"{arm.mean:.3f}",
        difference,
        f"{arm.nfe:.1f}",
        f"{arm.changed:.0%}" if learned else "–",
        f"{arm.ready:.0%}" if learned else "–",
        f"{arm.gate:.2f}" if learned else "–",
    ]
