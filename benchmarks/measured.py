"""A card of what was measured and what follows from it on paper, and its table on a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

Numbers = dict[str, float]


def write_page(
    path: Path, page: Path, name: str, measure: Callable[[], Numbers], extrapolated: Callable[[Numbers], Numbers]
) -> int:
    """Measure, write the card and its table between <!-- NAME --> and <!-- /NAME -->; with --check compare alone."""
    checking = "--check" in sys.argv
    if not checking:
        measured = measure()
        path.write_text(json.dumps({"measured": measured, "extrapolated": extrapolated(measured)}, indent=1) + "\n")
    card = json.loads(path.read_text())
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = page.read_text()
    before, rest = text.split(start)
    wanted = f"{before}{start}\n{table(card)}\n{end}{rest.split(end)[1]}"
    if checking:
        return int(wanted != text or card["extrapolated"] != extrapolated(card["measured"]))
    page.write_text(wanted)
    return 0


def table(card: dict[str, Numbers]) -> str:
    """Both as Markdown."""
    lines = ["| | measured or extrapolated | |", "|---|---|---:|"]
    for kind, numbers in card.items():
        lines += [f"| {name} | {kind} | {_number(value)} |" for name, value in numbers.items()]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if 100 <= value < 1e9 else f"{value:.2e}" if value >= 1e9 or value < 1e-3 else f"{value:.3g}"
