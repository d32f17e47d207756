"""pass@K curves of a study, one figure for each part of the problems."""

from __future__ import annotations

from typing import Any

import altair

from dprm.evaluate.study import Study
from dprm.report.charts import PLOT, colour, data, figure
from dprm.report.parts import Figure, Section, Table

DRAWN = "unbiased"


def passing(study: Study, colours: dict[str, str]) -> Section | None:
    """Curves of the unbiased estimator and a table of both; None for a study without pass@K."""
    rows = [
        {"arm": arm, "part": part, "estimator": estimator, "k": int(k), "value": value}
        for arm, parts in study.passk.items()
        for part, estimators in parts.items()
        for estimator, curve in estimators.items()
        for k, value in curve.items()
        if k.isdigit()
    ]
    if not rows:
        return None
    parts = list(dict.fromkeys(row["part"] for row in rows))
    return Section(
        "pass@K",
        "The chance that at least one of K samples is right. Curves are the unbiased estimate; the table has both.",
        [_curves([row for row in rows if row["part"] == part], part, colours) for part in parts],
        [_table(rows, colours)],
    )


def _curves(rows: list[dict[str, Any]], part: str, colours: dict[str, str]) -> Figure:
    estimators = {row["estimator"] for row in rows}
    drawn = [row for row in rows if row["estimator"] == DRAWN or DRAWN not in estimators]
    ks = sorted({row["k"] for row in drawn})
    names = list(dict.fromkeys(row["arm"] for row in drawn))
    lines = (
        altair.Chart(data(drawn))
        .mark_line(strokeWidth=2.5, point=altair.OverlayMarkDef(size=45))
        .encode(
            x=altair.X(
                "k:Q", title="K", scale=altair.Scale(type="log", base=2), axis=altair.Axis(values=ks, format="d")
            ),
            y=altair.Y("value:Q", title="pass@K", scale=altair.Scale(zero=False), axis=altair.Axis(format="%")),
            color=colour("arm", colours, names, legend=True),
        )
        .properties(width=PLOT, height=220)
    )
    posed = f"problems of {_sized(part)}" if part.isdecimal() else f"{part} problems"
    return figure(lines, f"pass@K on {posed}.")


def _sized(part: str) -> str:
    """The name of a part of the problems; a number is their size, not how many they are."""
    return f"size {part}" if part.isdecimal() else part


def _table(rows: list[dict[str, Any]], colours: dict[str, str]) -> Table:
    ks = sorted({row["k"] for row in rows})
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        curves.setdefault((row["arm"], row["part"], row["estimator"]), {})[row["k"]] = row["value"]
    lines = [
        [arm, _sized(part), estimator, *(f"{curve[k]:.1%}" if k in curve else "–" for k in ks)]
        for (arm, part, estimator), curve in curves.items()
    ]
    return Table("pass@K", ["arm", "problems", "estimate", *(f"K = {k}" for k in ks)], lines, colours)
