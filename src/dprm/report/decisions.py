"""Which decisions changed: how long an order stays with the reference, and which reveals came at another time."""

from __future__ import annotations

from typing import Any

import altair

from dprm.evaluate.card import Card
from dprm.evaluate.replays import TENTHS, Parting
from dprm.report.charts import PLOT, colour, data, figure
from dprm.report.colours import LEARNED
from dprm.report.maps import grid_map
from dprm.report.parts import Figure, Section, Table

# A map is drawn where shares lie so far from their mean, on average over reveals.
TELLING = 0.05


def decisions(card: Card, colours: dict[str, str]) -> Section | None:
    """The section, or None for a card without partings; an order that never parts from the reference has no map."""
    if not card.partings:
        return None
    moving = {name: parting for name, parting in card.partings.items() if _parts(parting)}
    maps = [
        _moved_map(name, parting, card.reference, colours[name])
        for name, parting in moving.items()
        if colours[name] == LEARNED and _says_something(parting)
    ]
    lead = (
        f"Each order against {card.reference} on the same problem. Once two decodings have parted they see different "
        "canvases: a reveal at another step is a difference, not always a choice."
    )
    if maps:
        lead += " The map is of the learned order; the table has all."
    if never := [name for name in card.partings if name not in moving]:
        lead += f" Never apart from {card.reference}: {', '.join(never)}."
    return Section(
        "Which decisions changed",
        lead,
        [_together(card, colours), *maps],
        [_together_table(card, colours), _moved_table(card)],
    )


def _parts(parting: Parting) -> bool:
    """Whether any reveal came at another step than the reference's."""
    return any(sum(moved) for _, moved in _rows(parting))


def _says_something(parting: Parting) -> bool:
    """Whether its map tells cells apart: not nearly all, or nearly none, of the reveals everywhere."""
    counts = [(n, m) for reveals, moved in _rows(parting) for n, m in zip(reveals, moved, strict=True) if n]
    total = sum(n for n, _ in counts)
    whole = sum(m for _, m in counts) / total
    return sum(n * abs(m / n - whole) for n, m in counts) / total > TELLING


def _together(card: Card, colours: dict[str, str]) -> Figure:
    rows = [
        {"order": name, "progress": tenth / TENTHS, "share": count / card.count}
        for name, parting in card.partings.items()
        for tenth, count in enumerate(parting.together)
    ]
    lines = (
        altair.Chart(data(rows))
        .mark_line(strokeWidth=2.5, point=altair.OverlayMarkDef(size=30))
        .encode(
            x=altair.X("progress:Q", title="progress of the decoding", axis=altair.Axis(format="%", tickCount=5)),
            y=altair.Y(
                "share:Q",
                title="problems still together",
                axis=altair.Axis(format="%", tickCount=5),
                scale=altair.Scale(domain=[0, 1]),
            ),
            color=colour("order", colours, list(card.partings), legend=True),
        )
        .properties(width=PLOT, height=200)
    )
    return figure(lines, f"Share of problems whose every decision so far was that of {card.reference}.")


def _moved_map(name: str, parting: Parting, reference: str, colour: str) -> Figure:
    cells = []
    for phase, (reveals, moved) in enumerate(_rows(parting)):
        for level, (count, elsewhere) in enumerate(zip(reveals, moved, strict=True)):
            share = elsewhere / count if count else 0.0
            cells.append({"phase": phase, "bin": level, "tint": share, "text": f"{100 * share:.0f}" if count else "·"})
    return grid_map(cells, f"{name}: reveals, in per cent, that {reference} made at another step.", colour)


def _rows(parting: Parting) -> list[tuple[list[int], list[int]]]:
    lines = zip(parting.reveals, parting.moved, strict=True)
    return [([int(n) for n in reveals.split()], [int(n) for n in moved.split()]) for reveals, moved in lines]


def _together_table(card: Card, colours: dict[str, str]) -> Table:
    columns = ["order", *(f"{100 * tenth // TENTHS} %" for tenth in range(TENTHS + 1))]
    rows = [[name, *map(str, parting.together)] for name, parting in card.partings.items()]
    return Table(
        f"Problems still together with {card.reference}, of {card.count:,}, by progress", columns, rows, colours
    )


def _moved_table(card: Card) -> Table:
    rows: list[list[str]] = []
    bins = 0
    for name, parting in card.partings.items():
        for phase, (reveals, moved) in enumerate(_rows(parting)):
            bins = len(reveals)
            rows.append([name, str(phase), *(f"{m}/{n}" if n else "·" for n, m in zip(reveals, moved, strict=True))])
    columns: list[Any] = ["order", "phase", *map(str, range(bins))]
    return Table("Moved reveals of all reveals, by phase and confidence bin", columns, rows)
