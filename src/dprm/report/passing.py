"""pass@K curves of a study, one figure for each part of the problems: a colour a training, a dash an order."""

from __future__ import annotations

from typing import Any

import altair

from dprm.evaluate.study import Study
from dprm.report.charts import PLOT, SOFT, colour, data, figure
from dprm.report.parts import Figure, Section, Table

DRAWN = "unbiased"


def passing(study: Study, colours: dict[str, str]) -> Section | None:
    """Curves of the unbiased estimator and a table of both; None for a study without pass@K."""
    conditions = _conditions(study)
    rows = [
        {
            "condition": label,
            "training": conditions.get(label, (label, ""))[0],
            "decoded by": conditions.get(label, (label, ""))[1],
            "part": part,
            "estimator": estimator,
            "k": int(k),
            "value": value,
            **dict(zip(("low", "high"), curve.get("intervals", {}).get(k, ()))),
        }
        for label, parts in study.passk.items()
        for part, estimators in parts.items()
        for estimator, curve in estimators.items()
        for k, value in curve.items()
        if k.isdigit()
    ]
    if not rows:
        return None
    parts = list(dict.fromkeys(row["part"] for row in rows))
    top = max(row.get("high", row["value"]) for row in rows)
    return Section(
        "pass@K",
        "The chance that at least one of K samples is right, with 95 % intervals where there are some, in one scale. "
        "Curves are the unbiased estimate; the table has both.",
        [_curves([row for row in rows if row["part"] == part], part, colours, top) for part in parts],
        [_table(rows, colours)],
    )


def _conditions(study: Study) -> dict[str, tuple[str, str]]:
    """Training and order of every condition, by its name in `Study.passk`; in older studies it is a training alone."""
    conditions = {}
    for entry in study.results:
        if {"arm", "order", "width"} <= entry.keys():
            arm, order, width = entry["arm"], entry["order"], entry["width"]
            conditions[f"{arm} by {order}"] = arm, order
            conditions[f"{arm} by {order}, {width} a step"] = arm, f"{order}, {width} a step"
    return conditions


def _curves(rows: list[dict[str, Any]], part: str, colours: dict[str, str], top: float) -> Figure:
    estimators = {row["estimator"] for row in rows}
    drawn = [row for row in rows if row["estimator"] == DRAWN or DRAWN not in estimators]
    ks = sorted({row["k"] for row in drawn})
    names = list(dict.fromkeys(row["training"] for row in drawn))
    orders = list(dict.fromkeys(row["decoded by"] for row in drawn))
    base = altair.Chart(data(drawn)).encode(
        x=altair.X("k:Q", title="K", scale=altair.Scale(type="log", base=2), axis=altair.Axis(values=ks, format="d")),
        y=altair.Y("value:Q", title="pass@K", scale=altair.Scale(domain=[0, top]), axis=altair.Axis(format="%")),
        color=colour("training", {name: colours.get(name, SOFT) for name in names}, names, legend=True),
        detail="condition:N",
    )
    lines = base.mark_line(strokeWidth=2.5)
    if len(orders) > 1:
        key = altair.Legend(title=None, columns=1, symbolType="stroke", symbolSize=600, symbolStrokeColor=SOFT)
        lines = lines.encode(strokeDash=altair.StrokeDash("decoded by:N", sort=orders, legend=key))
    dots = base.mark_point(filled=True, size=45, opacity=1)
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, strokeOpacity=0.7)
    bars = bars.encode(y=altair.Y("low:Q", title="pass@K"), y2="high:Q")
    chart = (lines + (bars if any("low" in row for row in drawn) else dots) + dots).properties(width=PLOT, height=220)
    posed = f"problems of {_sized(part)}" if part.isdecimal() else f"{part} problems"
    return figure(chart, f"pass@K on {posed}.")


def _sized(part: str) -> str:
    """The name of a part of the problems; a number is their size, not how many they are."""
    return f"size {part}" if part.isdecimal() else part


def _table(rows: list[dict[str, Any]], colours: dict[str, str]) -> Table:
    ks = sorted({row["k"] for row in rows})
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        curves.setdefault((row["condition"], row["part"], row["estimator"]), {})[row["k"]] = row["value"]
    lines = [
        [condition, _sized(part), estimator, *(f"{curve[k]:.1%}" if k in curve else "–" for k in ks)]
        for (condition, part, estimator), curve in curves.items()
    ]
    return Table("pass@K", ["training", "problems", "estimate", *(f"K = {k}" for k in ks)], lines, colours)
