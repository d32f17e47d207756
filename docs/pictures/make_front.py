"""Draw what every order of a card earns in two metrics at once, with 95 % intervals; the host's own order and its
sweep of randomness are joined by a line: an order that is no better lies on it.

python docs/pictures/make_front.py results/genmol-B-test.json docs/pictures/genmol.svg qed:sa qed:uniqueness
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from dprm.evaluate.card import Card, Estimate

WIDE, HIGH, GAP, LEFT, TOP = 420, 320, 60, 60, 20
INK, SOFT, OWN, LEARNED = "#1c1c1c", "#6b6b6b", "#1c1c1c", "#c2410c"


def picture(card: Card, pairs: list[tuple[str, str]]) -> str:
    """The SVG, a plot a pair."""
    wide, high = LEFT + len(pairs) * (WIDE + GAP), TOP + HIGH + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        ' font-family="system-ui, sans-serif" font-size="11">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
    ]
    for number, (across, up) in enumerate(pairs):
        parts += _plot(card, across, up, LEFT + number * (WIDE + GAP))
    return "\n".join([*parts, "</svg>", ""])


def _plot(card: Card, across: str, up: str, left: float) -> list[str]:
    shown = {name: (arm.metrics[across], arm.metrics[up]) for name, arm in card.arms.items() if up in arm.metrics}
    spans = [_span([each[axis] for each in shown.values()]) for axis in (0, 1)]

    def x(value: float) -> float:
        return left + (value - spans[0][0]) / (spans[0][1] - spans[0][0]) * WIDE

    def y(value: float) -> float:
        return TOP + HIGH - (value - spans[1][0]) / (spans[1][1] - spans[1][0]) * HIGH

    parts = [
        f'<rect x="{left}" y="{TOP}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#d9d9d9"/>',
        f'<text x="{left + WIDE / 2}" y="{TOP + HIGH + 36}" text-anchor="middle" fill="{SOFT}">{escape(across)}</text>',
        f'<text x="{left + 6}" y="{TOP + 14}" fill="{SOFT}">{escape(up)} ↑</text>',
    ]
    for place, value in ((left, spans[0][0]), (left + WIDE, spans[0][1])):
        parts.append(f'<text x="{place}" y="{TOP + HIGH + 16}" text-anchor="middle" fill="{SOFT}">{value:.3f}</text>')
    for place, value in ((TOP + HIGH, spans[1][0]), (TOP + 10, spans[1][1])):
        parts.append(f'<text x="{left - 6}" y="{place}" text-anchor="end" fill="{SOFT}">{value:.3f}</text>')
    sweep = sorted((each[0].mean, each[1].mean) for name, each in shown.items() if _is_sweep(card, name))
    points = " ".join(f"{x(right):.1f},{y(top):.1f}" for right, top in sweep)
    parts.append(f'<polyline points="{points}" fill="none" stroke="{SOFT}" stroke-dasharray="4 3"/>')
    beside: list[tuple[float, float, str, str]] = []
    for name, (right, top) in shown.items():
        colour = LEARNED if card.arms[name].policy else OWN if _is_sweep(card, name) else SOFT
        for axis, low, high in ((0, right.low, right.high), (1, top.low, top.high)):
            if low is not None and high is not None:
                ends = (x(low), x(high), y(top.mean), y(top.mean))
                ends = ends if axis == 0 else (x(right.mean), x(right.mean), y(low), y(high))
                x1, x2, y1, y2 = (f"{end:.1f}" for end in ends)
                parts.append(f'<line x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{x(right.mean):.1f}" cy="{y(top.mean):.1f}" r="4" fill="{colour}"/>')
        beside.append((x(right.mean), y(top.mean), _label(card, name), colour))
    return parts + _labels(beside, left + WIDE)


def _labels(beside: list[tuple[float, float, str, str]], edge: float) -> list[str]:
    """The names of points (x, y, text, colour), moved down until none covers another; left of a point at the edge."""
    parts, taken = [], list[tuple[float, float, float]]()
    for at, height, text, colour in sorted(beside, key=lambda point: point[1]):
        wide = 6.5 * len(text)
        start = at + 7 if at + 7 + wide < edge else at - 7 - wide
        line = height - 6
        while any(abs(line - other) < 11 and start < end and first < start + wide for other, first, end in taken):
            line += 3
        taken.append((line, start, start + wide))
        parts.append(f'<text x="{start:.1f}" y="{line:.1f}" fill="{colour}">{escape(text)}</text>')
    return parts


def _label(card: Card, name: str) -> str:
    """A short name: `r = 0.6` of the sweep, and of a learned order what it was fitted for."""
    signal = card.reference.partition(":")[0]
    if signal == "noisy_confidence" and _is_sweep(card, name):
        return "r = 0" if name == "confidence" else f"r = {name.partition(':')[2] or '0.3, its own'}"
    return name.rpartition("-")[2] if card.arms[name].policy else name


def _is_sweep(card: Card, name: str) -> bool:
    """The host's own order, or the same signal with another randomness; confidence is that with none."""
    signal = card.reference.partition(":")[0]
    return name.partition(":")[0] == signal or (signal == "noisy_confidence" and name == "confidence")


def _span(estimates: list[Estimate]) -> tuple[float, float]:
    ends = [end for each in estimates for end in (each.mean, each.low, each.high) if end is not None]
    room = 0.08 * (max(ends) - min(ends)) or 0.01
    return min(ends) - room, max(ends) + room


if __name__ == "__main__":
    asked = [tuple(pair.split(":")) for pair in sys.argv[3:]]
    Path(sys.argv[2]).write_text(picture(Card.load(Path(sys.argv[1])), asked))  # type: ignore[arg-type]
