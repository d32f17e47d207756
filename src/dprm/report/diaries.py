"""What trainings selected and what the theory assumes of them, over time: the diary of every arm of a study, drawn."""

from __future__ import annotations

from typing import Any

import altair

from dprm.evaluate.study import Study
from dprm.report.charts import PLOT, colour, data, figure
from dprm.report.parts import Figure, Section, Table

# What is drawn over the updates: name in the diary → axis, caption.
CURVES = {
    "early": ("cross-entropy", "Cross-entropy to the rollouts' tokens while at most half of an answer is visible."),
    "relation": ("correlation", "Correlation over confidence bins of confidence and cross-entropy."),
    "late_low": ("share", "Share of the reveals of the second half that come from bins of low confidence."),
    "value": ("value", "Mean learned value of low-confidence cells in late phases."),
    "gradient": ("norm", "Gradient proxy: mean norm of the gradient in the logits over masked positions."),
    "radius": ("radius", "Median empirical-Bernstein radius of the learned values, over events."),
    "drift": ("drift", "Mean change of the cells' means of exp(βR) since the refresh before, over events."),
}
BIN = "entropy in bin "


def diaries(study: Study, colours: dict[str, str]) -> Section | None:
    """Curves of every arm that kept a diary; None where none did."""
    kept = {arm: facts["diary"] for arm, facts in study.arms.items() if facts.get("diary", {}).get("step")}
    if not kept:
        return None
    figures = [_rewards(kept, colours)]
    for name, (axis, caption) in CURVES.items():
        rows = _points(kept, name)
        if rows:
            figures.append(_drawn(rows, "update", axis, caption, colours))
    bins = [
        {"training": arm, "x": (number + 0.5) / 16, "y": values[-1]}
        for arm, diary in kept.items()
        for number in range(16)
        if (values := [value for value in diary.get(f"{BIN}{number}", ()) if value is not None])
    ]
    if bins:
        caption = "Mean cross-entropy of masked positions by the model's confidence there, at the end."
        figures.append(_drawn(bins, "confidence", "cross-entropy", caption, colours))
    names = ("step", "reward", "spread", *CURVES)
    rows_shown = [[arm, *(_last(diary.get(name, ())) for name in names)] for arm, diary in kept.items()]
    table = Table("At the end", ["training", *names], rows_shown, colours)
    lead = (
        "Means over stretches of the training. They test what the theory assumes, and estimate none of its constants."
    )
    return Section("Under way", lead, figures, [table])


def _points(kept: dict[str, dict[str, list[float | None]]], name: str) -> list[dict[str, Any]]:
    return [
        {"training": arm, "x": step, "y": value}
        for arm, diary in kept.items()
        for step, value in zip(diary["step"], diary.get(name, ()))
        if value is not None
    ]


def _rewards(kept: dict[str, dict[str, list[float | None]]], colours: dict[str, str]) -> Figure:
    """The reward of rollouts with a band of one standard deviation, as logged."""
    rows = [
        {"training": arm, "x": step, "y": mean, "low": mean - (spread or 0.0), "high": mean + (spread or 0.0)}
        for arm, diary in kept.items()
        for step, mean, spread in zip(diary["step"], diary["reward"], diary.get("spread", diary["reward"]))
        if mean is not None
    ]
    names = list(kept)
    base = altair.Chart(data(rows)).encode(
        x=altair.X("x:Q", title="update"), color=colour("training", _of(names, colours), names, legend=True)
    )
    band = base.mark_area(opacity=0.12).encode(y=altair.Y("low:Q", title="reward"), y2="high:Q")
    line = base.mark_line(strokeWidth=2).encode(y="y:Q")
    chart = (band + line).properties(width=PLOT, height=220)
    return figure(chart, "Reward of the rollouts; bands are one standard deviation of the answers.")


def _drawn(rows: list[dict[str, Any]], x: str, y: str, caption: str, colours: dict[str, str]) -> Figure:
    names = list(dict.fromkeys(row["training"] for row in rows))
    chart = altair.Chart(data(rows)).encode(
        x=altair.X("x:Q", title=x),
        y=altair.Y("y:Q", title=y, scale=altair.Scale(zero=False)),
        color=colour("training", _of(names, colours), names, legend=True),
    )
    return figure(chart.mark_line(strokeWidth=2, point=True).properties(width=PLOT, height=200), caption)


def _of(names: list[str], colours: dict[str, str]) -> dict[str, str]:
    return {name: colours.get(name, "var(--soft)") for name in names}


def _last(values: Any) -> str:
    known = [value for value in values if value is not None]
    return f"{known[-1]:.4g}" if known else "–"
