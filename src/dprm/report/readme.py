"""The README's result table, from committed cards: `python -m dprm.report.readme`, or `--check` to compare only."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dprm.evaluate.card import Card
from dprm.evaluate.study import KIND

START, END = "<!-- results -->", "<!-- /results -->"


def table(cards: dict[str, Card]) -> str:
    """One line a card and order, as Markdown; differences are paired, with their 95 % interval."""
    lines = [
        "| host | positions a step | problems | order | solved | difference in reward | calls |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, card in cards.items():
        for order, arm in card.arms.items():
            delta = "" if arm.delta is None else f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]"
            link = f"[{card.host}](results/{name})"
            cells = [
                link,
                card.budget,
                f"{card.count:,} {card.split}",
                order,
                f"{arm.solved:.1%}",
                delta,
                f"{arm.nfe:.0f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def cards_in(folder: Path) -> dict[str, Card]:
    """The comparisons among the files of a folder, by file name; studies have arms too, and tables of their own."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())
        if "arms" in data and data.get("kind") != KIND:
            found[path.name] = Card.load(path)
    return found


def main(root: Path, check: bool) -> int:
    """Write the table into README.md, or say whether it is already there."""
    readme = root / "README.md"
    text = readme.read_text()
    before, rest = text.split(START)
    after = rest.split(END)[1]
    wanted = f"{before}{START}\n{table(cards_in(root / 'results'))}\n{END}{after}"
    if check:
        if wanted != text:
            print("README.md does not show the committed cards: run `python -m dprm.report.readme`", file=sys.stderr)
        return int(wanted != text)
    readme.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), "--check" in sys.argv))
