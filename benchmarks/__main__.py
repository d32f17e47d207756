"""`python -m benchmarks`: every benchmark as one table; exit code 1 if a ratio is above its limit."""

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import asking, decoding, importing, reading, selecting, stepping
from benchmarks.card import write_card

SUITES = {
    "reading": reading,
    "stepping": stepping,
    "selecting": selecting,
    "decoding": decoding,
    "asking": asking,
    "importing": importing,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", nargs="*", metavar="SUITE", help=f"which to run: {', '.join(SUITES)} (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--out", metavar="FILE", help="write a card: the rows, the machine, the versions")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.suite if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}: expected {', '.join(SUITES)}")
    rows = [row for name in arguments.suite or SUITES for row in SUITES[name].measure()]
    missed = [row for row in rows if row["limit"] is not None and row["ratio"] > row["limit"]]
    if arguments.out:
        write_card(arguments.out, "make bench", rows)
    if arguments.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return bool(missed)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("benchmark")
    for name in ("median µs", "ratio", "limit", ""):
        table.add_column(name, justify="right")
    for row in rows:
        limit = "" if row["limit"] is None else f"{row['limit']:.2f}"
        verdict = "" if row["limit"] is None else "[red]over" if row in missed else "[green]within"
        table.add_row(row["what"], f"{row['microseconds']:,.0f}", f"{row['ratio']:.2f}", limit, verdict)
    Console(width=110).print(table)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
