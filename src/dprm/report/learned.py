"""A policy for people: its values and its readiness by phase and confidence, and how far the values can be off."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import altair
import torch
from torch import Tensor

from dprm.fit.montecarlo import MonteCarlo, is_local
from dprm.fit.tracking import DELTA, Tracking
from dprm.order import Policy
from dprm.order.head import Head
from dprm.order.values import radius
from dprm.report.charts import PLOT, data, figure
from dprm.report.maps import grid_map, small_maps
from dprm.report.parts import Figure, Section, Table
from dprm.report.words import in_words

DELTAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
QUANTILES = {"a quarter of the visits below": 0.25, "median visit": 0.5, "three quarters below": 0.75}
# More states than this are not drawn one by one.
MOST_STATES = 20


def what_was_learned(policy: Policy) -> Section:
    """What a policy has learned: maps of a table, weights of a head; or what it asks of every prompt."""
    if is_local(policy):
        return _asked(policy)
    told = _maps(policy) if policy.head is None else _weights(policy.head)
    return replace(told, lead=f"{in_words(policy)} {told.lead}")


def _asked(policy: Policy) -> Section:
    setting = MonteCarlo.of_policy(policy)
    moments = ", ".join(f"{moment:.0%}" for moment in setting.moments)
    lead = (
        f"It has no values of its own. After {moments} of a decoding the {setting.candidates} surest candidates are "
        "each tried: the canvas is forked and finished, and the terminal rewards decide. Each path costs calls."
    )
    return Section("What is asked of every prompt", lead)


def _weights(head: Head, count: int = 24) -> Section:
    rows = [[name, f"{100 * weight:+.2f}"] for name, weight in head.strongest(count)]
    lead = (
        f"A head taught by {head.support:,} comparisons: its value is a weighted sum of features of the order of 1. "
        f"+ is promoted, − is held back; a shift such as −1 is the neighbour on that side."
    )
    table = Table("Weights", ["feature", "100 × weight"], rows)
    return Section("What the head has learned", lead, [], [table])


def _maps(policy: Policy) -> Section:
    """Value and readiness maps, averaged over tables and the host's states; small maps of every state."""
    by_table = (policy.cells.tables, *policy.cells.shape)
    events = policy.table.support.view(by_table)
    support = events.sum(0)
    value = (policy.table.value.view(by_table) * events).sum(0) / support.clamp(min=1e-300)
    mass = support.sum(-1)
    mean = (value * support).sum(-1) / mass.clamp(min=1e-300)
    ready = (events / policy.gate.ready).clamp(max=1) if policy.gate.ready else (events > 0).double()
    share = (ready * events).sum((0, -1)) / mass.clamp(min=1e-300)
    figures = [
        grid_map(_signed(mean, mass), "100 × value: + is promoted, − is held back; a dot has no evidence."),
        grid_map(
            _shares(share, mass),
            f"Readiness in per cent: evidence against the {policy.gate.ready} events of full trust.",
        ),
    ]
    if 1 < policy.cells.aux <= MOST_STATES:
        top = float(value.abs().max())
        panels = {
            f"state {state}": _signed(value[..., state], support[..., state], top) for state in range(policy.cells.aux)
        }
        figures.append(small_maps(panels, "Values by host state, in one scale; phases down, confidence across."))
    counts = {"tables": policy.cells.tables, "host states": policy.cells.aux}
    several = " and ".join(f"{count} {what}" for what, count in counts.items() if count > 1)
    over = f", averaged over {several} by their evidence" if several else ""
    lead = f"Rows are phases of the decoding, first to last; columns are bins of confidence{over}."
    return Section("Values and readiness", lead, figures, [_table(mean, mass, share)])


def sureness(policy: Policy) -> Section | None:
    """How far the values of a table can be off: over δ, and over time where its fit has noted it."""
    if policy.stats is None:
        return None
    figures, tables = [], []
    tracking = Tracking.of_notes(policy.notes)
    if len(tracking) > 1:
        figures += [
            _over_time(tracking.events, tracking.radius, "radius", f"Median radius over time, δ = {DELTA}."),
            # Nothing has moved before the first round.
            _over_time(tracking.events[1:], tracking.drift[1:], "drift", "Drift: how far a cell moved in a round."),
        ]
        tables.append(_time_table(tracking))
    rows = [row for delta in DELTAS for row in _quantiles(policy, delta)]
    figures.append(_curve(rows, "Radius against δ, the chance that any cell is outside."))
    tables.append(_radius_table(rows))
    lead = (
        "How far a value can be off, simultaneously over all cells: the empirical-Bernstein radius of the paper, "
        "weighted by how often cells were visited. A value smaller than its radius is not settled."
    )
    return Section("Radius", lead, figures, tables)


def _signed(value: Tensor, mass: Tensor, top: float | None = None) -> list[dict[str, Any]]:
    strongest = (float(value.abs().max()) if top is None else top) or 1.0
    return [
        {"phase": p, "bin": b, "signed": True, "tint": number / strongest, "text": _hundredths(number) if n else "·"}
        for p, b, number, n in _cells(value, mass)
    ]


def _hundredths(number: float) -> str:
    rounded = round(100 * number)
    return f"{rounded:+d}" if rounded else "0"


def _shares(share: Tensor, mass: Tensor) -> list[dict[str, Any]]:
    return [
        {"phase": p, "bin": b, "tint": number, "text": f"{100 * number:.0f}" if n else "·"}
        for p, b, number, n in _cells(share, mass)
    ]


def _cells(value: Tensor, mass: Tensor) -> Iterable[tuple[int, int, float, float]]:
    for phase, (numbers, counts) in enumerate(zip(value.tolist(), mass.tolist(), strict=True)):
        for level, (number, count) in enumerate(zip(numbers, counts, strict=True)):
            yield phase, level, number, count


def _table(value: Tensor, mass: Tensor, share: Tensor) -> Table:
    rows = [
        [str(phase), str(level), f"{number:+.4f}", f"{count:.0f}", f"{float(share[phase, level]):.0%}"]
        for phase, level, number, count in _cells(value, mass)
        if count
    ]
    return Table("Cells with evidence", ["phase", "bin", "value", "events", "ready"], rows)


def _quantiles(policy: Policy, delta: float) -> list[dict[str, Any]]:
    """Quantiles of the radius over visits."""
    assert policy.stats is not None
    visits = policy.stats.sums[0]
    values, order = radius(policy.stats, delta=delta)[visits > 0].sort()
    share = visits[visits > 0][order].cumsum(0) / visits.sum().clamp(min=1)
    rows = []
    for label, level in QUANTILES.items():
        if len(values):
            cell = int(torch.searchsorted(share, level).clamp(max=len(values) - 1))
            rows.append({"delta": delta, "quantile": label, "radius": float(values[cell])})
    return rows


def _over_time(events: tuple[float, ...], values: tuple[float, ...], title: str, caption: str) -> Figure:
    rows = [{"events": event, "value": value} for event, value in zip(events, values, strict=True)]
    lines = (
        altair.Chart(data(rows))
        .mark_line(strokeWidth=2, stroke="var(--accent)", point=altair.OverlayMarkDef(size=30, fill="var(--accent)"))
        .encode(
            x=altair.X("events:Q", title="events", axis=altair.Axis(tickCount=5, format="~s")),
            y=altair.Y("value:Q", title=title, axis=altair.Axis(tickCount=5, format="~g")),
        )
        .properties(width=PLOT, height=200)
    )
    return figure(lines, caption)


def _time_table(tracking: Tracking) -> Table:
    columns = zip(tracking.events, tracking.ready, tracking.radius, tracking.drift, strict=True)
    rows = [[f"{events:,.0f}", f"{ready:.0%}", f"{wide:.3f}", f"{moved:.4f}"] for events, ready, wide, moved in columns]
    return Table("Round by round", ["events", "in ready cells", "median radius", "drift"], rows)


def _curve(rows: list[dict[str, Any]], caption: str) -> Figure:
    axis = altair.Axis(values=list(DELTAS), format="~g")
    marks = _marks([row["radius"] for row in rows])
    height = altair.Scale(type="log", domain=[marks[0], marks[-1]])
    lines = (
        altair.Chart(data(rows))
        .mark_line(strokeWidth=2, stroke="var(--accent)", point=altair.OverlayMarkDef(size=30, fill="var(--accent)"))
        .encode(
            x=altair.X("delta:Q", title="δ", scale=altair.Scale(type="log", nice=False), axis=axis),
            y=altair.Y("radius:Q", title="radius", scale=height, axis=altair.Axis(values=marks, format="~g")),
            strokeDash=altair.StrokeDash(
                "quantile:N",
                sort=list(QUANTILES),
                legend=altair.Legend(title=None, columns=1, symbolType="stroke", symbolSize=600),
            ),
        )
        .properties(width=PLOT, height=200)
    )
    return figure(lines, caption)


def _marks(values: list[float]) -> list[float]:
    """1, 2, 5, 10, … around some positive values: the ticks of a logarithmic axis."""
    lowest, highest = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    ladder = [digit * 10.0**power for power in range(lowest, highest + 1) for digit in (1, 2, 5)]
    first = max(index for index, mark in enumerate(ladder) if mark <= min(values))
    last = min(index for index, mark in enumerate(ladder) if mark >= max(values))
    return ladder[first : last + 1]


def _radius_table(rows: list[dict[str, Any]]) -> Table:
    lines = [[f"{row['delta']:g}", row["quantile"], f"{row['radius']:.3f}"] for row in rows]
    return Table("Radius against δ", ["δ", "of the visits", "radius"], lines)
