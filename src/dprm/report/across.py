"""All hosts on one page: configuration, cost, protocol, support, outputs, preferences, verdicts, evidence of theory.

From the cards alone. A row is a card with a learned order; a host without one has a row that says so.
"""

from __future__ import annotations

import math
import re
from html import escape

from markupsafe import Markup

from dprm.evaluate.ablations import SHUFFLED, ablation_name
from dprm.evaluate.card import Arm, Card
from dprm.evaluate.verdict import EQUAL_CALLS, judge, policies
from dprm.fit.cost import Cost
from dprm.host.metrics import BENEFIT
from dprm.hosts import ENTRIES
from dprm.report.front import Line, lines_of
from dprm.report.numbers import NOTHING, number, with_interval
from dprm.report.parts import Figure, Section, Table

# Of a radar, in pixels: its radius, and the room around it.
_RADIUS, _ROOM = 92, 100
# Host's own dashed; preferences in these.
_STROKES = ("var(--learned)", "var(--order-2)", "var(--order-4)", "var(--order-3)", "var(--order-5)", "var(--order-6)")


def across(cards: dict[str, Card]) -> list[Section]:
    """The sections of the page."""
    lines = lines_of(cards)
    without = [name for name in ENTRIES if name not in {line.card.host for line in lines}]
    missing = f" No card yet: {', '.join(without)}." if without else ""
    tables = [configuration(lines), cost(lines), protocol(lines), support(lines), outputs(lines), seeds(lines)]
    return [
        Section("Across hosts", f"One row a card with a learned order.{missing}", [], [*tables, scalarizations(cards)]),
        *([Section("Preferences", _RADAR, figures, [])] if (figures := radars(cards)) else []),
        Section("What follows", "The verdict of every card, and what the cards say of the theory.", [],
                [deployment(lines), theory(lines)]),
    ]  # fmt: skip


def _name(line: Line) -> str:
    return f"{line.card.host}, {line.setting}"


def _table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    return Table(title, columns, rows, folded=False, words=True)


def configuration(lines: list[Line]) -> Table:
    """What is ordered, rewarded, stored and chosen."""
    rows = []
    for line in lines:
        card, fit = line.card, line.learned.fit
        entry = ENTRIES.get(card.host)
        reward = str(card.preference) or next(metric.name for metric in card.metrics if metric.role == BENEFIT)
        ordered = entry.ordered if entry else NOTHING
        kind = fit.get("estimator", NOTHING)
        guidance = number(line.learned.guidance, "g")
        rows.append(
            [_name(line), ordered, reward, card.reference, kind, guidance, _in_words(fit.get("setting", NOTHING))]
        )
    columns = ["host", "what is ordered", "reward", "own order", "estimator", "guidance", "cells, gate, shortlist"]
    return _table("Configuration", columns, rows)


def _in_words(setting: str) -> str:
    """`Name(a=1, b=(2, 3))` as `a 1, b (2, 3)`."""
    inside = re.fullmatch(r"\w+\((.*)\)", setting)
    return re.sub(r"(\w+)=", r"\1 ", inside[1]).replace("'", "") if inside else setting


def cost(lines: list[Line]) -> Table:
    """Model calls of a decoding relative to the host's own, and why; seconds apart from them; calls of the fit."""
    rows = []
    for line in lines:
        ratio = line.learned.nfe / max(line.own.nfe, 1e-9)
        kinds = ", ".join(f"{count:.1f} {kind}" for kind, count in line.learned.calls.items())
        reason = "a stored policy asks nothing" if ratio <= EQUAL_CALLS else "values are asked for at every decoding"
        seconds = NOTHING if line.learned.time_ratio is None else f"{line.learned.time_ratio:.2f} ×"
        spent = Cost.of_notes(dict(line.learned.fit)).calls if line.learned.fit else 0
        rows.append([_name(line), f"{ratio:.2f} ×", kinds, reason, seconds, f"{spent:,}" if spent else NOTHING])
    columns = ["host", "model calls to own", "calls a problem", "reason", "seconds to own", "calls of the fit, once"]
    return _table("Cost of a decoding", columns, rows)


def protocol(lines: list[Line]) -> Table:
    """Unit, pairing, split, seeds, intervals, and what is kept to work them out again."""
    rows = []
    for line in lines:
        card = line.card
        unit = "problem" if card.groups == card.count else f"problem, in {card.groups:,} groups"
        pairing = "paired" if card.paired else "independent samples"
        kept = "every problem's scores" if line.learned.differs is not None else "means and intervals"
        about = [f"{card.count:,} of {card.split}", ", ".join(map(str, card.seeds))]
        rows.append([_name(line), unit, pairing, *about, f"{card.resamples:,} resamples, 95 %", kept])
    columns = ["host", "unit", "differences", "problems", "decode seeds", "interval", "outcomes kept"]
    return _table("Protocol", columns, rows)


def support(lines: list[Line]) -> Table:
    """How much of what is stored is ready, and how ready are the decisions that were made."""
    rows = []
    for line in lines:
        arm = line.learned
        stored = _stored(arm)
        shares = [f"{arm.ready:.0%}", f"{arm.gate:.2f}", f"{arm.changed:.0%}"]
        rows.append([_name(line), stored, *shares])
    columns = [
        "host",
        "visits in ready cells, of the fit",
        "decisions in ready cells",
        "mean gate",
        "changed",
    ]
    return _table("Support", columns, rows)


def _stored(arm: Arm) -> str:
    from dprm.fit.tracking import Tracking

    ready = Tracking.of_notes(arm.fit).ready if arm.fit else ()
    return f"{ready[-1]:.0%}" if ready else NOTHING


def outputs(lines: list[Line]) -> Table:
    """Whether changed decisions change final outputs, compared token by token."""
    rows = [
        [
            _name(line),
            f"{line.learned.changed:.0%}",
            NOTHING if line.learned.differs is None else f"{line.learned.differs:.1%} of {line.card.count:,}",
            with_interval(line.learned.delta, line.learned.delta_low, line.learned.delta_high),
        ]
        for line in lines
    ]
    columns = ["host", "decisions changed", "final outputs that are not the own order's", "difference in reward"]
    return _table("Do changed decisions change outputs?", columns, rows)


def seeds(lines: list[Line]) -> Table:
    """Every metric of the learned order, with its interval and its spread between decode seeds."""
    rows = []
    for line in lines:
        if len(line.card.metrics) < 2:
            continue
        for metric in line.card.metrics:
            if metric.name in line.learned.metrics:
                each = line.learned.metrics[metric.name]
                gain = with_interval(each.delta, each.delta_low, each.delta_high)
                spread = number(each.spread) if len(line.card.seeds) > 1 else NOTHING
                rows.append([_name(line), metric.name, metric.role, f"{each.mean:.3f}", gain, spread])
    columns = ["host", "metric", "role", "learned order", "difference", "between decode seeds"]
    return _table("Every metric", columns, rows)


def scalarizations(cards: dict[str, Card]) -> Table:
    """The preferences that policies were fitted for."""
    rows = {}
    for card in cards.values():
        for name in policies(card):
            asked = card.arms[name].fit.get("preference", "")
            if "=" in asked:
                kind, _, weights = asked.rpartition(":")
                rows[card.host, asked] = [card.host, kind or "weighted", weights.replace(",", ", ")]
    return _table("Scalarizations", ["host", "kind", "weights"], list(rows.values()))


def deployment(lines: list[Line]) -> Table:
    """The deployment rule, filled in."""
    rows = []
    for line in lines:
        verdict = judge(line.card)
        rows.append([_name(line), line.verdict, verdict.reason, "; ".join(verdict.evidence[:4])])
    return _table("Verdict", ["host", "verdict", "reason", "evidence"], rows)


_CLAIMS = "claim", "what would show it", "what the cards show"


def theory(lines: list[Line]) -> Table:
    """Each claim of the theory, its observable check, and the hosts that pass it."""
    ready = [line for line in lines if line.learned.ready >= 0.5]
    controls = {_name(line): gap for line in lines if (gap := _shuffled(line)) is not None}
    beaten = [name for name, (low, _) in controls.items() if low > 0]
    equal = [line for line in lines if line.learned.nfe <= EQUAL_CALLS * line.own.nfe]
    gains = [line for line in equal if (line.learned.delta_low or 0.0) > 0]
    changing = [line for line in lines if line.learned.differs]
    rows = [
        ["tracking: stored values approach the population's", "decisions in ready cells",
         f"at least half: {len(ready)} of {len(lines)} ({_listed(ready)})"],
        ["values carry the gain, not the gate or the counts", "the learned order beats its shuffled values",
         f"{len(beaten)} of {len(controls)} with that control ({', '.join(beaten) or 'none'})"],
        ["changed decisions reach the output", "final outputs differ at equal calls",
         f"{len(changing)} of {sum(line.learned.differs is not None for line in lines)} that were compared"],
        ["reward-tilted order earns more at equal calls", "interval of the difference above 0",
         f"{len(gains)} of {len(equal)} ({_listed(gains)})"],
    ]  # fmt: skip
    return _table("Theory to evidence", list(_CLAIMS), rows)


def _listed(lines: list[Line]) -> str:
    return ", ".join(dict.fromkeys(line.card.host for line in lines)) or "none"


def _shuffled(line: Line) -> tuple[float, float] | None:
    """The interval of the learned order minus its shuffled values, where the card has them."""
    name = next(name for name, arm in line.card.arms.items() if arm is line.learned)
    control = line.card.arms.get(ablation_name(name, SHUFFLED))
    if control is None or control.gap_low is None or control.gap_high is None:
        return None
    return control.gap_low, control.gap_high


# ---- the radar -------------------------------------------------------------------------------------------------------

_RADAR = (
    "Every axis is a benefit, from the lowest to the highest mean of any order drawn; further out is better. "
    "The host's own order is dashed, preferences are solid."
)


def radars(cards: dict[str, Card]) -> list[Figure]:
    """One radar for every card with three or more benefits and learned orders."""
    figures = []
    for card in cards.values():
        axes = [metric.name for metric in card.metrics if metric.role == BENEFIT]
        learned = policies(card)
        if len(axes) >= 3 and len(learned) > 1:
            figures.append(_radar(card, axes, learned[: len(_STROKES)]))
    return figures


def _radar(card: Card, axes: list[str], learned: list[str]) -> Figure:
    means = {name: [card.arms[name].metrics[axis].mean for axis in axes] for name in (card.reference, *learned)}
    low = [min(values[axis] for values in means.values()) for axis in range(len(axes))]
    high = [max(values[axis] for values in means.values()) for axis in range(len(axes))]
    middle = _RADIUS + _ROOM
    turns = [2 * math.pi * axis / len(axes) - math.pi / 2 for axis in range(len(axes))]

    def point(axis: int, out: float) -> str:
        return f"{middle + out * math.cos(turns[axis]):.1f},{middle + out * math.sin(turns[axis]):.1f}"

    def ring(values: list[float]) -> str:
        shares = [(value - a) / (b - a) if b > a else 1.0 for value, a, b in zip(values, low, high)]
        return " ".join(point(axis, _RADIUS * (0.15 + 0.85 * share)) for axis, share in enumerate(shares))

    about = ", ".join(part for part in (card.host, card.variant) if part)
    caption = f"{about}: benefits under every preference, {card.count:,} problems."
    wide, tall = 2 * middle, 2 * middle - 40 + 18 * len(means)
    parts = [
        f'<svg role="img" aria-label="{escape(caption)}" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}">'
    ]
    for axis, name in enumerate(axes):
        end, label = point(axis, _RADIUS), point(axis, _RADIUS + 26 if turns[axis] < 0 else _RADIUS + 14)
        parts.append(f'<path d="M{middle},{middle} L{end}" stroke="var(--line)"/>')
        x, y = label.split(",")
        anchor = "middle" if abs(float(x) - middle) < 5 else "start" if float(x) > middle else "end"
        style = f'font-size="11" fill="var(--soft)" text-anchor="{anchor}"'
        ends = f"{low[axis]:.3f} to {high[axis]:.3f}"
        text = f'{escape(name)}<tspan x="{x}" dy="13">{ends}</tspan>'
        parts.append(f'<text x="{x}" y="{y}" {style}>{text}</text>')
    for row, (name, values) in enumerate(means.items()):
        own = name == card.reference
        stroke = "var(--order-0)" if own else _STROKES[row - 1]
        dash = ' stroke-dasharray="6 4"' if own else ""
        style = f'fill="none" stroke="{stroke}" stroke-width="2.2"{dash}'
        parts.append(f'<polygon points="{ring(values)}" {style}/>')
        top = 2 * middle - 40 + 18 * row
        parts.append(f'<path d="M60,{top} h22" {style}/>')
        parts.append(f'<text x="90" y="{top + 4}" font-size="12" fill="var(--ink)">{escape(name)}</text>')
    return Figure(Markup("".join([*parts, "</svg>"])), caption)
