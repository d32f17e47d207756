"""The tables of costs, from the cards: `python -m benchmarks.table` (with `--check`: compare only).

docs/speed.md has the rows of results/bench.json, and those of results/bench-gpu.json once that card is there.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
Row = dict[str, object]


def rendered(rows: list[Row]) -> str:
    """Rows as Markdown."""
    lines = ["| | median | ratio | limit |", "|---|---|---|---|"]
    for row in rows:
        median = "" if row["microseconds"] is None else f"{row['microseconds']:,.0f} µs"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        limit = "" if row["limit"] is None else f"{row['limit']:.2f}"
        lines.append(f"| {row['what']} | {median} | {ratio} | {limit} |")
    return "\n".join(lines)


def replaced(text: str, name: str, table: str) -> str:
    """The text with another table between the two marks of this name."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


def written() -> dict[Path, str]:
    """The documents as they should be."""
    card = json.loads((ROOT / "results" / "bench.json").read_text())
    speed = ROOT / "docs" / "speed.md"
    page = replaced(speed.read_text(), "bench", rendered(card["rows"]))
    machine = ", ".join(f"{name} {value}" for name, value in card["machine"].items() if value is not None)
    page = replaced(page, "machine", f"Machine: {machine}.")
    device = ROOT / "results" / "bench-gpu.json"
    if device.exists():
        page = replaced(page, "bench-gpu", rendered(json.loads(device.read_text())["rows"]))
    return {speed: page}


def main() -> int:
    documents = written()
    if "--check" in sys.argv:
        return int(any(path.read_text() != text for path, text in documents.items()))
    for path, text in documents.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
