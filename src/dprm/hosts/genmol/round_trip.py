"""Does every molecule come back? SMILES → bracket-SAFE → tokens → bracket-SAFE → molecule, counted.

python -m dprm.hosts.genmol.round_trip --count 10000 --out results/genmol-round-trip.json
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from dprm.data.draws import Draws
from dprm.hosts.genmol.brackets import RARE, TOO_LONG
from dprm.hosts.genmol.data import MOSES, listed, written
from dprm.order.files import write_whole

KIND = "round trip"


def round_trip(path: Path, count: int, seed: int = 1) -> dict[str, object]:
    """Of `count` molecules drawn from a file, how many come back, and why others do not.

    A molecule that does not fit the canvas comes back as text; it is counted apart.
    """
    smiles = list(listed(path))
    rows = Draws("round trip", seed).permutations(len(smiles))[:count].tolist()
    reasons: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for _, _, reason, said in written([smiles[row] for row in rows]):
        reasons[reason or "comes back"] += 1
        if reason:
            examples.setdefault(reason, said)
    total = sum(reasons.values())
    back = reasons["comes back"] + reasons[TOO_LONG] + reasons[RARE]
    return {
        "kind": KIND,
        "from": path.name,
        "seed": seed,
        "molecules": total,
        "same molecule as text": back,
        "share": back / total,
        "fits the canvas": reasons["comes back"],
        "reasons": dict(reasons.most_common()),
        "examples": examples,
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--from", dest="own", type=Path, help="your own SMILES file; default the MOSES training set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    card = round_trip(asked.own or MOSES.obtain(), asked.count, asked.seed)
    own = f" --from {asked.own}" if asked.own else ""
    card["command"] = f"python -m dprm.hosts.genmol.round_trip --count {asked.count} --seed {asked.seed}{own}"
    text = json.dumps(card, indent=2) + "\n"
    if asked.out is not None:
        write_whole(asked.out, text.encode())
    print(text, end="")


if __name__ == "__main__":
    main()
