"""A search: what its survivors are worth by rank, and what an answer costs.

Nothing of it is drawn for cards whose answers were not searched for.
"""

from __future__ import annotations

from typing import Any

import altair

from dprm.evaluate.card import Arm, Card, Estimate
from dprm.evaluate.measure import CALL_SHARES
from dprm.report.charts import PLOT, SOFT, colour, data, figure
from dprm.report.names import LEARNED
from dprm.report.numbers import NOTHING, with_interval
from dprm.report.parts import Figure, Section, Table
from dprm.search.around import PLAIN
from dprm.search.ranks import any_name, rank_name
from dprm.search.search import VERIFIER

_VOTED = "voted"
# Widths of the reference alone, such as `confidence, 24 wide`: the same method with another budget.
_WIDER = " wide"


def searching(card: Card, colours: dict[str, str]) -> Section | None:
    """Accuracy by rank, accuracy against calls, and both in a table; None where no answer was searched for."""
    ranks = _ranks(card)
    if not ranks:
        return None
    voted = _voted(card)
    drawn = [name for name in card.arms if name in (card.reference, PLAIN) or name.startswith(LEARNED)]
    return Section(
        "Search",
        f"Of every question the survivors of a search are judged by rank, the one its verifier finds best first, and "
        f"the answer they vote for ({_VOTED}). {ranks[-1][0].upper()}{ranks[-1][1:]} is right where one of them is.",
        [_by_rank(card, drawn, ranks, voted, colours), _by_calls(card, voted, colours)],
        [_table(card, ranks, voted, colours)],
    )


def _ranks(card: Card) -> list[str]:
    """The metrics of the survivors: rank 1 …, and the best of them."""
    names = {metric.name for metric in card.metrics}
    count = 0
    while rank_name(count + 1) in names:
        count += 1
    return [*(rank_name(rank + 1) for rank in range(count)), any_name(count)] if any_name(count) in names else []


def _voted(card: Card) -> str:
    """The metric that ranks are shown in, of the answer that won the vote."""
    names = [metric.name for metric in card.metrics]
    return "solved" if "solved" in names else names[0]


def _by_rank(card: Card, drawn: list[str], ranks: list[str], voted: str, colours: dict[str, str]) -> Figure:
    places = [_VOTED, *ranks]
    rows = [
        {"order": name, "answer": place, "share": each.mean, "low": each.low, "high": each.high}
        for name in drawn
        for place, each in zip(places, _estimates(card.arms[name], [voted, *ranks]))
    ]
    base = altair.Chart(data(rows)).encode(
        x=altair.X("answer:N", sort=places, title=None, axis=altair.Axis(labelAngle=0)),
        xOffset=altair.XOffset("order:N", sort=drawn),
        color=colour("order", colours, drawn, legend=True),
    )
    scale = altair.Scale(zero=False, nice=True)
    bars = base.mark_rule(strokeWidth=2).encode(y=altair.Y("low:Q", title=voted, scale=scale), y2="high:Q")
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(y="share:Q")
    caption = (
        f"{voted[0].upper()}{voted[1:]} of the answer voted for and of each survivor by rank, with 95 % intervals."
    )
    return figure((bars + dots).properties(width=PLOT, height=240), caption)


def _by_calls(card: Card, voted: str, colours: dict[str, str]) -> Figure:
    rows: list[dict[str, Any]] = []
    for name, arm in card.arms.items():
        each = arm.metrics[voted]
        shares = dict(zip(CALL_SHARES, arm.diagnostics.get("calls by problem", [arm.nfe] * len(CALL_SHARES))))
        few, many = shares[0.25], shares[0.75]
        rows.append({"order": name, "calls": arm.nfe, "few": few, "many": many, "share": each.mean})
        rows[-1] |= {"low": each.low, "high": each.high}
    wider = [row for row in rows if row["order"] == card.reference or row["order"].endswith(_WIDER)]
    scale = altair.Scale(zero=False, nice=False, padding=24)
    x, y = (
        altair.X("calls:Q", title="model calls a question", scale=scale),
        altair.Y("share:Q", title=voted, scale=scale),
    )
    base = altair.Chart(data(rows)).encode(color=colour("order", colours, list(card.arms)))
    layers = [
        altair.Chart(data(sorted(wider, key=lambda row: row["calls"]))).mark_line(stroke=SOFT, strokeDash=[4, 3]),
        base.mark_rule(strokeWidth=1.5, strokeOpacity=0.6).encode(x="few:Q", x2="many:Q", y=y),
        base.mark_rule(strokeWidth=1.5, strokeOpacity=0.6).encode(x=x, y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y),
        base.mark_text(align="left", dx=8, dy=-7).encode(x=x, y=y, text="order:N"),
    ]
    layers[0] = layers[0].encode(x=x, y=y)
    caption = (
        f"Share {voted} against model calls, those of the verifier among them. Across: the middle half "
        f"of the questions; up: the 95 % interval. The dashed line is {card.reference} order at several widths."
    )
    return figure(altair.layer(*layers).properties(width=PLOT, height=280), caption)


def _table(card: Card, ranks: list[str], voted: str, colours: dict[str, str]) -> Table:
    rows = []
    for name, arm in card.arms.items():
        told = arm.diagnostics.get("calls by problem")
        rows.append(
            [
                name,
                *(f"{each.mean:.3f}" for each in _estimates(arm, [voted, *ranks])),
                with_interval(*_difference(arm.metrics[voted])),
                f"{arm.nfe - arm.calls.get(VERIFIER, 0.0):.1f}",
                f"{arm.calls.get(VERIFIER, 0.0):.1f}",
                NOTHING if told is None else " / ".join(f"{value:.0f}" for value in told),
            ]
        )
    shares = " / ".join(f"{share:.0%}" for share in CALL_SHARES)
    columns = ["order", _VOTED, *ranks, f"{_VOTED}, difference to {card.reference}", "denoiser calls", "verifier calls"]
    return Table("Survivors and calls", [*columns, f"calls of a question, {shares}"], rows, colours, folded=False)


def _estimates(arm: Arm, names: list[str]) -> list[Estimate]:
    return [arm.metrics[name] for name in names]


def _difference(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.delta, estimate.delta_low, estimate.delta_high
