"""A policy for people: its values and its readiness by phase and confidence, and how far the values can be off."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import altair
import torch
from torch import Tensor

from dprm.order import Policy
from dprm.order.head import Head
from dprm.order.values import radius
from dprm.report.charts import PLOT, data, figure
from dprm.report.maps import grid_map, small_maps
from dprm.report.parts import Figure, Section, Table

DELTAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
USUAL = 0.05
QUANTILES = {"a quarter of the visits below": 0.25, "median visit": 0.5, "three quarters below": 0.75}
# More states than this are not drawn one by one.
MOST_STATES = 20


def what_was_learned(policy: Policy) -> Section:
    """What a policy has learned: maps of a table, weights of a head."""
    return _maps(policy) if policy.head is None else _weights(policy.head)


def _weights(head: Head, count: int = 24) -> Section:
    rows = [[name, f"{100 * weight:+.2f}"] for name, weight in head.strongest(count)]
    said = "" if head.network is None else " Its network is not shown."
    lead = (
        f"A head taught by {head.support:,} comparisons: its value is a weighted sum of features of the order of 1. "
        f"+ is promoted, − is held back; a shift such as −1 is the neighbour on that side.{said}"
    )
    table = Table("Weights", ["feature", "100 × weight"], rows, folded=False)
    return Section("What the head has learned", lead, [], [table])


def _maps(policy: Policy) -> Section:
    """Value and readiness maps, averaged over the host's states; small maps of every state."""
    support = policy.table.support.view(policy.cells.shape)
    value = policy.table.value.view(policy.cells.shape)
    mass = support.sum(-1)
    mean = (value * support).sum(-1) / mass.clamp(min=1e-300)
    ready = (support / policy.gate.ready).clamp(max=1) if policy.gate.ready else (support > 0).double()
    share = (ready * support).sum(-1) / mass.clamp(min=1e-300)
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
    over = f", averaged over {policy.cells.aux} host states by their evidence" if policy.cells.aux > 1 else ""
    lead = f"Rows are phases of the decoding, first to last; columns are bins of confidence{over}."
    return Section("Values and readiness", lead, figures, [_table(mean, mass, share)])


def radius_section(policies: dict[str, Policy]) -> Section | None:
    """The radius of policies with evidence: over time where there are several, over δ for the last."""
    known = {name: policy for name, policy in policies.items() if policy.stats is not None}
    if not known:
        return None
    ordered = sorted(known.items(), key=lambda entry: entry[1].step)
    last_name, last = ordered[-1]
    figures, tables = [], []
    if len(ordered) > 1:
        rows = [row for name, policy in ordered for row in _quantiles(policy, USUAL, x=policy.step, name=name)]
        figures.append(_curve(rows, "observations", f"Radius over time, δ = {USUAL}.", log=False))
        tables.append(_radius_table(rows, "Radius over time", "observations"))
    rows = [row for delta in DELTAS for row in _quantiles(last, delta, x=delta, name=last_name)]
    figures.append(
        _curve(rows, "δ", f"Radius of {last_name} against δ, the chance that any cell is outside.", log=True)
    )
    tables.append(_radius_table(rows, f"Radius of {last_name} against δ", "δ"))
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


def _quantiles(policy: Policy, delta: float, x: float, name: str) -> list[dict[str, Any]]:
    """Quantiles of the radius over visits."""
    assert policy.stats is not None
    visits = policy.stats.sums[0]
    values, order = radius(policy.stats, delta=delta)[visits > 0].sort()
    share = visits[visits > 0][order].cumsum(0) / visits.sum().clamp(min=1)
    found = []
    for label, level in QUANTILES.items():
        if len(values):
            place = int(torch.searchsorted(share, level).clamp(max=len(values) - 1))
            found.append({"x": x, "quantile": label, "radius": float(values[place]), "name": name})
    return found


def _curve(rows: list[dict[str, Any]], title: str, caption: str, log: bool) -> Figure:
    scale = altair.Scale(type="log", nice=False) if log else altair.Scale(zero=False, padding=8)
    values = [row["x"] for row in rows]
    axis = altair.Axis(values=sorted(set(values)), format="~g") if log else altair.Axis(tickCount=5)
    marks = _marks([row["radius"] for row in rows])
    height = altair.Scale(type="log", domain=[marks[0], marks[-1]])
    lines = (
        altair.Chart(data(rows))
        .mark_line(strokeWidth=2, stroke="var(--accent)", point=altair.OverlayMarkDef(size=30, fill="var(--accent)"))
        .encode(
            x=altair.X("x:Q", title=title, scale=scale, axis=axis),
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


def _radius_table(rows: list[dict[str, Any]], title: str, name: str) -> Table:
    return Table(
        title,
        ["policy", name, "of the visits", "radius"],
        [[row["name"], f"{row['x']:g}", row["quantile"], f"{row['radius']:.3f}"] for row in rows],
    )
