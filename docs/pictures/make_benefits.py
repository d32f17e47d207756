"""Draw what every order of a card earns in every metric, with 95 % intervals.

python docs/pictures/make_benefits.py results/dcm-preferences-test.json docs/pictures/dcm.svg
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from dprm.evaluate.card import Card

NAMES, PANEL, GAP, ROW, TOP = 200, 170, 26, 22, 44
INK, SOFT, LINE, OWN, LEARNED = "#1c1c1c", "#6b6b6b", "#d9d9d9", "#1c1c1c", "#c2410c"


def picture(card: Card) -> str:
    """The SVG."""
    metrics = [metric.name for metric in card.metrics]
    wide, high = NAMES + len(metrics) * (PANEL + GAP), TOP + ROW * len(card.arms) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
    ]
    for row, (name, arm) in enumerate(card.arms.items()):
        weight = "600" if arm.policy or name == card.reference else "400"
        y = TOP + ROW * (row + 0.5)
        parts.append(
            f'<text x="0" y="{y + 4:.0f}" fill="{_colour(card, name)}" font-weight="{weight}">{escape(name)}</text>'
        )
    for column, metric in enumerate(metrics):
        parts += _panel(card, metric, NAMES + column * (PANEL + GAP), high)
    return "\n".join([*parts, "</svg>", ""])


def _panel(card: Card, metric: str, left: float, high: float) -> list[str]:
    """One metric: a point and its interval for every order; the reference as a line from top to bottom."""
    shown = {name: arm.metrics[metric] for name, arm in card.arms.items() if metric in arm.metrics}
    limits = [end for each in shown.values() for end in (each.mean, each.low, each.high) if end is not None]
    low, span = min(limits), max(max(limits) - min(limits), 1e-9)

    def x(value: float) -> float:
        return left + 6 + (value - low) / span * (PANEL - 12)

    own = x(shown[card.reference].mean)
    parts = [
        f'<text x="{left}" y="16" fill="{INK}" font-weight="600">{escape(metric)}</text>',
        f'<text x="{left}" y="32" fill="{SOFT}" font-size="10">{low:.3f}</text>',
        f'<text x="{left + PANEL}" y="32" fill="{SOFT}" font-size="10" text-anchor="end">{low + span:.3f}</text>',
        f'<line x1="{own:.1f}" x2="{own:.1f}" y1="{TOP - 6}" y2="{high - 8}" stroke="{LINE}"/>',
    ]
    for row, name in enumerate(card.arms):
        if name not in shown:
            continue
        each, y, colour = shown[name], TOP + ROW * (row + 0.5), _colour(card, name)
        if each.low is not None and each.high is not None:
            ends = f'x1="{x(each.low):.1f}" x2="{x(each.high):.1f}" y1="{y}" y2="{y}"'
            parts.append(f'<line {ends} stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(each.mean):.1f}" cy="{y}" r="4" fill="{colour}"/>')
    return parts


def _colour(card: Card, name: str) -> str:
    if name == card.reference:
        return OWN
    return LEARNED if card.arms[name].policy else SOFT


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(Card.load(Path(sys.argv[1]))))
