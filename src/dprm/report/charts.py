"""Charts by Vega-Lite, drawn once into SVG: no script in the page, sharp in print, colours from the style sheet."""

from __future__ import annotations

from typing import Any
from unicodedata import east_asian_width

import altair
import vl_convert
from markupsafe import Markup, escape

from dprm.report.lean import lean
from dprm.report.parts import Figure

INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"
# Of a figure; of a plot beside a scale with numbers; of the longest name beside a plot.
WIDTH, PLOT, LONGEST = 430, 360, 260

# In a legend: a symbol with its distance to the text, and the distance to the next column.
_SYMBOL, _GAP = 16, 20

_AXIS = {
    "labelColor": SOFT,
    "titleColor": SOFT,
    "gridColor": LINE,
    "domainColor": LINE,
    "tickColor": LINE,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "labelLimit": LONGEST,
    "titlePadding": 8,
}
_CONFIG: dict[str, Any] = {
    "background": "transparent",
    # The figure has one text for those who do not see it, and a table; a label on every mark would drown both.
    "aria": False,
    "font": "sans-serif",
    # On the left, room for labels that a reader's font sets wider than the one they were measured in.
    "padding": {"left": 22, "top": 2, "right": 2, "bottom": 2},
    "view": {"stroke": None},
    "axis": _AXIS,
    "header": {"labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 12},
    "legend": {
        "labelColor": INK,
        "titleColor": SOFT,
        "labelFontSize": 12,
        "labelLimit": PLOT - 24,
        "orient": "bottom",
        # Two legends stand below each other, not beside.
        "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},
    },
    "text": {"fill": INK, "fontSize": 11},
}


def data(rows: list[dict[str, Any]]) -> altair.InlineData:
    """Rows for a chart."""
    return altair.InlineData(values=rows)


def colour(field: str, colours: dict[str, str], names: list[str], legend: bool = False) -> altair.Color:
    """The colour of the order that `field` names."""
    scale = altair.Scale(domain=names, range=[colours[name] for name in names])
    key = altair.Legend(title=None, columns=legend_columns(names), columnPadding=_GAP) if legend else None
    return altair.Color(f"{field}:N", scale=scale, legend=key)


def text_width(text: str) -> int:
    """About how many pixels a text takes in the widest of the page's fonts, at the size of a chart's labels."""
    return sum(13 if east_asian_width(character) in "WF" else 7 for character in text)


def legend_columns(names: list[str], width: int = PLOT) -> int:
    """The most columns in which a legend, filled row by row, is no wider than its plot."""
    for columns in range(len(names), 1, -1):
        widths = [max(map(text_width, names[column::columns])) for column in range(columns)]
        if sum(widths) + columns * (_SYMBOL + _GAP) <= width:
            return columns
    return 1


def figure(chart: Any, caption: str) -> Figure:
    """Draw a chart; the caption is also its text for those who do not see it."""
    svg = lean(vl_convert.vegalite_to_svg({**chart.to_dict(), "config": _CONFIG}))
    named = Markup('<svg role="img" aria-label="{}" ').format(escape(caption))
    return Figure(Markup(svg.replace("<svg ", named, 1)), caption)
