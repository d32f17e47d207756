"""Charts by Vega-Lite, drawn once into SVG: no script in the page, sharp in print, colours from the style sheet."""

from __future__ import annotations

import re
from typing import Any

import altair
import vl_convert
from markupsafe import Markup, escape

from dprm.report.parts import Figure

INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"
WIDTH = 430

_AXIS = {
    "labelColor": SOFT,
    "titleColor": SOFT,
    "gridColor": LINE,
    "domainColor": LINE,
    "tickColor": LINE,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "labelLimit": 190,
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
    "legend": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": 12, "labelLimit": 220, "orient": "bottom"},
    "text": {"fill": INK, "fontSize": 11},
}

_TAG, _LONG = re.compile(r"<[^>]*>"), re.compile(r"(\d\.\d\d)\d+")


def data(rows: list[dict[str, Any]]) -> altair.InlineData:
    """Rows for a chart."""
    return altair.InlineData(values=rows)


def colour(field: str, colours: dict[str, str], names: list[str], legend: bool = False) -> altair.Color:
    """The colour of the order that `field` names."""
    scale = altair.Scale(domain=names, range=[colours[name] for name in names])
    return altair.Color(f"{field}:N", scale=scale, legend=altair.Legend(title=None, columns=3) if legend else None)


def figure(chart: Any, caption: str) -> Figure:
    """Draw a chart; the caption is also its text for those who do not see it."""
    svg = _shortened(vl_convert.vegalite_to_svg({**chart.to_dict(), "config": _CONFIG}))
    named = Markup('<svg role="img" aria-label="{}" ').format(escape(caption))
    return Figure(Markup(svg.replace("<svg ", named, 1)), caption)


def _shortened(svg: str) -> str:
    """Coordinates to a hundredth of a pixel; they stand inside tags, and what people read stands outside."""
    return _TAG.sub(lambda tag: _LONG.sub(r"\1", tag[0]), svg)
