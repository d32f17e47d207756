"""Draw what the host omni paints: the first captions under four orders, and interventions from shared canvases.

python docs/pictures/make_omni.py results/omni-paths-select.json docs/pictures/omni [results/omni-test.json]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dprm.evaluate.card import Card
from dprm.hosts.omni.files import GAP, WIDE, lines_of, picture, svg, text

ORDERS = {
    "random": "random, 1 path",
    "entropy": "native (−H), 1 path",
    "uniform order, 5 paths": "uniform order, 5 paths",
    "dprm, 5 paths": "DPRM, 5 paths",
}
SIDE, TOP = 150, 24
NATIVE, CHOSEN = "#1c1c1c", "#c2410c"


def contact_sheet(card: Card) -> str:
    """A row an order, a column a caption; the same captions and random numbers in all."""
    examples = card.notes["examples"]
    parts = []
    for row, (name, title) in enumerate(ORDERS.items()):
        y = TOP + 34 + row * (WIDE + GAP)
        parts += [text(line, 4, y + 20 + 14 * number, "bold") for number, line in enumerate(lines_of(title, 20))]
        for column, answer in enumerate(examples[name]):
            caption, _, letters = answer.rpartition(" ")
            x = SIDE + column * (WIDE + GAP)
            parts.append(picture(letters, x, y))
            if not row:
                parts += [text(line, x, 14 + 13 * number) for number, line in enumerate(lines_of(caption))]
    count = max(len(examples[name]) for name in ORDERS)
    return svg(SIDE + count * (WIDE + GAP), TOP + 34 + len(ORDERS) * (WIDE + GAP), parts)


def interventions(kept: dict) -> str:
    """A row a caption: the shared canvas with both positions marked, and both continuations."""
    entries = [entry for entry in kept["captions"] if "pictures" in entry]
    parts = [text(title, 4 + column * (WIDE + GAP), 14, "bold") for column, title in enumerate(HEADS)]
    for row, entry in enumerate(entries):
        y = TOP + row * (WIDE + 44)
        places = [(0, NATIVE), (entry["chosen"], CHOSEN)]
        marks = [(*entry["places"][path], colour) for path, colour in places if isinstance(entry["places"][path], list)]
        for column, letters in enumerate(entry["pictures"]):
            x = 4 + column * (WIDE + GAP)
            shown = marks if not column else [mark for mark in marks if mark[2] == (NATIVE, CHOSEN)[column - 1]]
            parts.append(picture(letters, x, y, marks=shown))
            if column:
                path = (0, entry["chosen"])[column - 1]
                parts.append(text(f"similarity {entry['similarity'][path]:.3f}", x, y + WIDE + 14))
        parts.append(text(entry["caption"], 4, y + WIDE + 28))
    return svg(4 + 3 * (WIDE + GAP), TOP + max(1, len(entries)) * (WIDE + 44), parts)


HEADS = ("canvas after 96 steps", "native choice", "chosen choice")


def main() -> None:
    """Write NAME-intervention.svg, and NAME.svg of a card."""
    kept, out, *cards = sys.argv[1:]
    Path(f"{out}-intervention.svg").write_text(interventions(json.loads(Path(kept).read_text())))
    for card in cards:
        Path(f"{out}.svg").write_text(contact_sheet(Card.load(Path(card))))


if __name__ == "__main__":
    main()
