"""The README's cost table, from results/bench.json: `python -m benchmarks.table` (with `--check`: compare only)."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
START, END = "<!-- bench -->", "<!-- /bench -->"


def rendered(rows: list[dict[str, object]]) -> str:
    """The rows that have a limit, as Markdown."""
    lines = ["| | median | ratio | limit |", "|---|---|---|---|"]
    for row in rows:
        if row["limit"] is not None:
            lines.append(f"| {row['what']} | {row['microseconds']:,.0f} µs | {row['ratio']:.2f} | {row['limit']:.2f} |")
    return "\n".join(lines)


def main() -> int:
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, rest = text.split(START)
    after = rest.split(END)[1]
    wanted = f"{before}{START}\n{rendered(json.loads((ROOT / 'results/bench.json').read_text())['rows'])}\n{END}{after}"
    if "--check" in sys.argv:
        return int(wanted != text)
    readme.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
