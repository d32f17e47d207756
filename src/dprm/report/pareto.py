"""Pareto plots: what each order earns in two benefits, or in its reward and in a metric of all answers together, and
the front of the best."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import altair

from dprm.evaluate.card import Card
from dprm.host.metrics import BENEFIT, SET
from dprm.report.charts import PLOT, SOFT, colour, data, figure
from dprm.report.parts import Figure, Section, Table

# Pairs of benefits that are drawn.
MOST = 6
REWARD = "reward"


def pareto(card: Card, colours: dict[str, str]) -> Section | None:
    """A plot for every pair of benefits; None for a card with fewer than two."""
    names = [metric.name for metric in card.metrics if metric.role == BENEFIT]
    if len(names) < 2:
        return None
    sets = [metric.name for metric in card.metrics if metric.role == SET]
    pairs = [*list(combinations(names, 2))[:MOST], *((REWARD, name) for name in sets)]
    names += [*([REWARD] if sets and REWARD not in names else []), *sets]
    earned = {
        order: {REWARD: arm.mean} | {name: arm.metrics[name].mean for name in names if name in arm.metrics}
        for order, arm in card.arms.items()
    }
    rows = [
        [order, *(f"{means[name]:.3f}" if name in means else "–" for name in names)] for order, means in earned.items()
    ]
    reward = str(card.preference) or names[0]
    outside = f"; {', '.join(sets)} of all answers together, which nothing is rewarded for" if sets else ""
    return Section(
        "Preferences",
        f"Mean of each benefit, the larger the better{outside}; the reward is {reward}. The line joins the orders that "
        "no other order beats in both.",
        [_plot(earned, pair, colours) for pair in pairs],
        [Table("Benefits", ["order", *names], rows, colours)],
    )


def front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other point reaches in both coordinates, from left to right."""
    best: list[tuple[float, float]] = []
    for point in sorted(set(points), reverse=True):
        if not best or point[1] > best[-1][1]:
            best.append(point)
    return best[::-1]


def _plot(earned: dict[str, dict[str, float]], pair: tuple[str, str], colours: dict[str, str]) -> Figure:
    across, up = pair
    points: list[dict[str, Any]] = [
        {"order": order, "across": means[across], "up": means[up]}
        for order, means in earned.items()
        if across in means and up in means
    ]
    best = [{"across": right, "up": top} for right, top in front([(point["across"], point["up"]) for point in points])]
    scale = altair.Scale(zero=False, nice=False, padding=24)
    x, y = altair.X("across:Q", title=across, scale=scale), altair.Y("up:Q", title=up, scale=scale)
    line = altair.Chart(data(best)).mark_line(stroke=SOFT, strokeDash=[4, 3]).encode(x=x, y=y)
    base = altair.Chart(data(points)).encode(x=x, y=y)
    names = [point["order"] for point in points]
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(color=colour("order", colours, names))
    words = base.mark_text(align="left", dx=9, dy=-7).encode(text="order:N")
    return figure((line + dots + words).properties(width=PLOT, height=240), f"{up} against {across}.")
