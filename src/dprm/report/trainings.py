"""What a study found: what each condition solved with its interval, and all its tables."""

from __future__ import annotations

from typing import Any

from dprm.evaluate.study import Study
from dprm.report.comparison import intervals
from dprm.report.numbers import NOTHING, with_interval
from dprm.report.parts import Figure, Section, Table

# Tables of more rows than this are folded.
SHORT = 12
# The part that has all problems; figures are of it.
WHOLE = "all"


def trainings(study: Study, colours: dict[str, str]) -> Section:
    """Conditions, paired differences and the order audit."""
    tables = [
        _table("Every condition", study.results, colours, folded=len(study.results) > SHORT),
        _table("Differences, with their 95 % intervals", study.differences, colours),
        _table("Order audit: means over problems, and differences to the host's own order", study.audit, colours),
    ]
    return Section(
        "Trainings compared",
        f"Every training is judged on the same {study.count:,} problems of {study.split}.",
        _figures(study, colours),
        [table for table in tables if table.rows],
    )


def _figures(study: Study, colours: dict[str, str]) -> list[Figure]:
    """One figure for every order and width; orders that only one training has stand together in one."""
    points: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    passing = False
    for entry in study.results:
        # Where several answers were sampled, mean pass@K is what is compared.
        passing = "unbiased" in entry
        interval = entry["unbiased"] if passing else {**entry, "estimate": entry.get("solved")}
        if "arm" in entry and entry.get("part", WHOLE) == WHOLE and interval.get("low") is not None:
            ends = {name: interval[name] for name in ("estimate", "low", "high")}
            point = {"arm": entry["arm"], "decoded": entry.get("order"), **ends}
            points.setdefault((entry.get("order"), entry.get("width")), []).append(point)
    title = "mean pass@K" if passing else "share solved"
    figures, alone = [], dict[tuple[Any, Any], list[dict[str, Any]]]()
    for (order, width), group in points.items():
        if order is not None and len(group) == 1 < len(study.arms):
            alone.setdefault((group[0]["arm"], width), []).append(group[0])
            continue
        where = WHOLE if order is None else f"decoded by {order}, {width} a step"
        named = [{**point, "order": point["arm"]} for point in group]
        figures.append(intervals(named, colours, title, f"{_capital(title)} by training, {where}."))
    for (arm, width), group in alone.items():
        named = [{**point, "order": point["decoded"]} for point in group]
        caption = f"{_capital(title)} after {arm}, by orders that no other training has, {width} a step."
        figures.append(intervals(named, colours, title, caption))
    return figures


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _table(title: str, entries: list[dict[str, Any]], colours: dict[str, str], folded: bool = True) -> Table:
    """Entries as they are: a column for every key, an interval or a mean in one cell."""
    columns = list(dict.fromkeys(key for entry in entries for key in entry))
    rows = [[_cell(entry.get(column)) for column in columns] for entry in entries]
    return Table(title, columns, rows, colours, folded)


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, dict) and {"estimate", "low", "high"} <= value.keys():
        return with_interval(value["estimate"], value["low"], value["high"])
    if isinstance(value, dict) and "mean" in value:
        delta = with_interval(value.get("delta"), value.get("delta_low"), value.get("delta_high"))
        return f"{value['mean']:.3f}" if delta == NOTHING else f"{value['mean']:.3f}; {delta}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(inner)}" for name, inner in value.items())
    return f"{value:.3f}" if isinstance(value, float) else str(value)
