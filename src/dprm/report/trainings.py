"""What a study found: each condition's share solved with its interval, and all its tables."""

from __future__ import annotations

from typing import Any

from dprm.evaluate.study import Study
from dprm.report.comparison import intervals
from dprm.report.parts import Figure, Section, Table

# Tables of more rows than this are folded.
SHORT = 12


def trainings(study: Study, colours: dict[str, str]) -> Section:
    """Conditions, paired differences and the order audit."""
    tables = [
        _table("Every condition", study.results, colours, folded=len(study.results) > SHORT),
        _table("Paired differences, with their 95 % intervals", study.differences, colours),
        _table("Order audit, means over problems", study.audit, colours),
    ]
    return Section(
        "Trainings compared",
        f"Every training is judged on the same {study.count:,} problems of {study.split}.",
        _figures(study, colours),
        [table for table in tables if table.rows],
    )


def _figures(study: Study, colours: dict[str, str]) -> list[Figure]:
    """One figure for every order and width, where the conditions have them."""
    groups: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for entry in study.results:
        if {"arm", "solved", "low", "high"} <= entry.keys():
            point = {"order": entry["arm"], "estimate": entry["solved"], "low": entry["low"], "high": entry["high"]}
            groups.setdefault((entry.get("order"), entry.get("width")), []).append(point)
    figures = []
    for (order, width), points in groups.items():
        where = f"{order} order, {width} a step" if order is not None else "all"
        figures.append(intervals(points, colours, "share solved", f"Share solved by training, {where}."))
    return figures


def _table(title: str, entries: list[dict[str, Any]], colours: dict[str, str], folded: bool = True) -> Table:
    """Entries as they are: a column for every key, an interval or a mean in one cell."""
    columns = list(dict.fromkeys(key for entry in entries for key in entry))
    rows = [[_cell(entry.get(column)) for column in columns] for entry in entries]
    return Table(title, columns, rows, colours, folded)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict) and {"estimate", "low", "high"} <= value.keys():
        return f"{value['estimate']:+.3f} [{value['low']:+.3f}, {value['high']:+.3f}]"
    if isinstance(value, dict) and "mean" in value:
        return f"{value['mean']:.3f}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
