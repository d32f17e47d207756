"""Maps by phase and confidence: numbers in a grid, tinted by their size."""

from __future__ import annotations

from typing import Any

import altair

from dprm.report.charts import INK, WIDTH, data, figure
from dprm.report.parts import Figure

PROMOTED, HELD_BACK, PLAIN = "var(--promoted)", "var(--held-back)", "var(--plain)"
# The strongest tint leaves the number on it readable.
WEAKEST, STRONGEST = 0.05, 0.75

_BARE: dict[str, Any] = {"ticks": False, "domain": False}


def grid_map(cells: list[dict[str, Any]], caption: str, plain: str = PLAIN) -> Figure:
    """A map with phases down and confidence across.

    Args:
        cells: one a cell: phase and bin, `text`, `tint` from −1 to 1 (negative in the other colour) and `signed`.
        plain: the colour of what has no sign.
    """
    bins, phases = _size(cells)
    # A bin is named by its lower end, and every fourth is.
    ends = f"datum.value % {max(1, bins // 4)} ? '' : format(datum.value / {bins}, '.2~f')"
    base = altair.Chart(data([_tinted(cell, plain) for cell in cells])).encode(
        x=altair.X("bin:O", title="confidence from", axis=altair.Axis(labelExpr=ends, labelAngle=0, **_BARE)),
        y=altair.Y("phase:O", title="phase", axis=altair.Axis(labelExpr="datum.value + 1", **_BARE)),
    )
    fill = altair.Color("colour:N", scale=None)
    boxes = base.mark_rect(stroke="var(--paper)", strokeWidth=1.5, cornerRadius=3).encode(
        color=fill, opacity=altair.Opacity("strength:Q", scale=None)
    )
    words = base.mark_text(fontSize=10 if bins > 12 else 11, fill=INK).encode(text="text:N")
    return figure((boxes + words).properties(width=(WIDTH - 50) // bins * bins, height=25 * phases), caption)


def small_maps(panels: dict[str, list[dict[str, Any]]], caption: str, columns: int = 4) -> Figure:
    """Maps without numbers, one a panel: for many states side by side."""
    rows = [{**_tinted(cell, PLAIN), "panel": name} for name, cells in panels.items() for cell in cells]
    bins, phases = _size(rows)
    pixels = max(2, (WIDTH - 14 * columns) // (columns * bins))
    boxes = (
        altair.Chart()
        .mark_rect()
        .encode(
            x=altair.X("bin:O", title=None, axis=None),
            y=altair.Y("phase:O", title=None, axis=None),
            color=altair.Color("colour:N", scale=None),
            opacity=altair.Opacity("strength:Q", scale=None),
        )
        .properties(width=pixels * bins, height=(pixels + 2) * phases)
    )
    panel = altair.Facet("panel:N", title=None, sort=list(panels))
    return figure(boxes.facet(panel, data=data(rows), columns=columns, spacing=14), caption)


def _size(cells: list[dict[str, Any]]) -> tuple[int, int]:
    return 1 + max(cell["bin"] for cell in cells), 1 + max(cell["phase"] for cell in cells)


def _tinted(cell: dict[str, Any], plain: str) -> dict[str, Any]:
    colour = plain if not cell.get("signed") or not cell["tint"] else PROMOTED if cell["tint"] > 0 else HELD_BACK
    return {**cell, "colour": colour, "strength": WEAKEST + (STRONGEST - WEAKEST) * min(1.0, abs(cell["tint"]))}
