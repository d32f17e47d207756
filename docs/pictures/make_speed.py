"""Draws docs/pictures/speed.svg from results/bench.json: `python docs/pictures/make_speed.py`."""

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BELOW = 380, 260, 62, 56, 52
COLOURS = {"microseconds": "#1f6f8b", "peer": "#b3541e"}
NAMES = {"microseconds": "head, what is masked", "peer": "softmax and top-k, everything"}


def panel(x0: int, rows: list[dict], ticks: list[float]) -> list[str]:
    """One panel: microseconds of a step against the vocabulary, both axes logarithmic."""
    wide, high = WIDTH - LEFT - 16, HEIGHT - TOP - BELOW
    sizes = [row["vocabulary"] for row in rows]

    def across(size: float) -> float:
        return x0 + LEFT + wide * math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def up(value: float) -> float:
        return TOP + high * (1 - math.log(value / ticks[0]) / math.log(ticks[-1] / ticks[0]))

    batch = rows[0]["rows"]
    parts = [f'<text x="{x0 + LEFT}" y="{TOP - 16}" font-weight="600">{batch} × 32 positions</text>']
    for tick in ticks:
        label = f"{tick / 1000:g} ms" if tick >= 1000 else f"{tick:g} µs"
        parts += [
            f'<line x1="{x0 + LEFT}" x2="{x0 + LEFT + wide}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#ddd"/>',
            f'<text x="{x0 + LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    for size in sizes:
        parts.append(f'<text x="{across(size):.1f}" y="{TOP + high + 20}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text x="{x0 + LEFT + wide / 2}" y="{HEIGHT - 10}" text-anchor="middle">vocabulary</text>')
    for name, colour in COLOURS.items():
        points = [(across(row["vocabulary"]), up(row[name])) for row in rows]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
    return parts


def drawn(card: dict) -> str:
    """The picture of a card."""
    rows = [row for row in card["rows"] if "vocabulary" in row]
    batches = sorted({row["rows"] for row in rows})
    values = [row[name] for row in rows for name in COLOURS]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    ticks = [10.0**power for power in range(low, high + 1)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(batches)}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH * len(batches)}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for number, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + 220 * number
        parts += [
            f'<circle cx="{x}" cy="16" r="5" fill="{colour}"/>',
            f'<text x="{x + 12}" y="20">{NAMES[name]}</text>',
        ]
    for number, batch in enumerate(batches):
        parts += panel(WIDTH * number, [row for row in rows if row["rows"] == batch], ticks)
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    here = Path(__file__)
    card = Path(sys.argv[1]) if len(sys.argv) > 1 else here.parents[2] / "results" / "bench.json"
    here.with_name("speed.svg").write_text(drawn(json.loads(card.read_text())))
