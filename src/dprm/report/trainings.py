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


def conclusion(study: Study) -> str:
    """What the study found, in a sentence: the learned training against the others, on all problems."""
    learned = next((arm for arm in study.arms if arm.startswith("dprm")), None)
    if learned is None:
        return ""
    found = []
    for entry in study.differences:
        sides = (entry["treated"], entry["control"])
        whole = entry.get("over", "training") == "training" and entry.get("part", WHOLE) == WHOLE
        if not whole or learned not in sides:
            continue
        sign, other = (1.0, sides[1]) if sides[0] == learned else (-1.0, sides[0])
        # The same training decoded otherwise is not another one.
        if " by " not in other:
            found.append((other, entry.get("width", 1), entry.get("order"), _signed(entry, sign)))
    if not found:
        return ""
    narrow = min(width for _, width, _, _ in found)
    order = next(order for _, width, order, _ in found if width == narrow)
    shown = [f"{_against(*interval)} {other}" for other, width, by, interval in found if (width, by) == (narrow, order)]
    by = f", decoded by {order}, {narrow} a step" if order is not None else ""
    what = "mean pass@K" if study.passk else "share solved"
    return f"Trained along the learned order ({learned}){by}: {what} {'; '.join(dict.fromkeys(shown))}."


def _signed(entry: dict[str, Any], sign: float) -> tuple[float, float, float]:
    interval = entry.get("unbiased", entry)
    low, high = sorted((sign * interval["low"], sign * interval["high"]))
    return sign * interval["estimate"], low, high


def _against(estimate: float, low: float, high: float) -> str:
    word = "better than" if low > 0 else "worse than" if high < 0 else "not to be told from"
    return f"{with_interval(estimate, low, high)}, {word}"


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
    everything = [end for group in points.values() for point in group for end in (point["low"], point["high"])]
    # One scale for all: they are there to be compared.
    domain = (min(everything), max(everything)) if everything else None
    figures, alone = [], dict[tuple[Any, Any], list[dict[str, Any]]]()
    for (order, width), group in points.items():
        if order is not None and len(group) == 1 < len(study.arms):
            alone.setdefault((group[0]["arm"], width), []).append(group[0])
            continue
        where = WHOLE if order is None else f"decoded by {order}, {width} a step"
        named = [{**point, "order": point["arm"]} for point in group]
        figures.append(intervals(named, colours, title, f"{_capital(title)} by training, {where}.", domain=domain))
    for (arm, width), group in alone.items():
        named = [{**point, "order": point["decoded"]} for point in group]
        caption = f"{_capital(title)} after {arm}, by orders that no other training has, {width} a step."
        figures.append(intervals(named, colours, title, caption, domain=domain))
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
