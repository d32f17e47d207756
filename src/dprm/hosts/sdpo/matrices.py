"""Position weight matrices of the factors that open chromatin in liver cells, from JASPAR.

`matrices.json` beside this file holds the counts of JASPAR's matrices as they are (CC BY 4.0); it is written by

    python -m dprm.hosts.sdpo.matrices
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import torch
from torch import Tensor

from dprm.data.packages import Source
from dprm.order.files import write_whole

MATRICES = Source(
    package="pyjaspar",
    archive="pyjaspar-4.0.0-py3-none-any.whl",
    sha256="01b393f668c3cb552d3d58262a50005b1410e389e0a6bf5d570e976fbdaf01b3",
    inside="pyjaspar/data/JASPAR2024.sqlite",
    licence="CC BY 4.0",
    about="JASPAR 2024, position frequency matrices",
)
# Factors of liver cells, one of each family, by their identifier in JASPAR.
LIVER = {
    "HNF4A": "MA0114.5",
    "HNF1A": "MA0046.3",
    "FOXA2": "MA0047.4",
    "CEBPB": "MA0466.4",
    "ONECUT1": "MA0679.3",
    "NR1H4": "MA1110.3",
}
SHIPPED = Path(__file__).with_name("matrices.json")
# Added to every count, over the four bases together; bases are equally frequent without a factor.
PSEUDO = 0.8


def counts() -> dict[str, Tensor]:
    """[4,W] float64 counts of A, C, G, T by factor."""
    listed = json.loads(SHIPPED.read_text())["matrices"]
    return {name: torch.tensor(rows, dtype=torch.float64) for name, rows in listed.items()}


def log_odds(matrix: Tensor) -> Tensor:
    """[4,W] log2 of p(base | factor) over 1/4, with pseudo-counts."""
    smoothed = matrix + PSEUDO / 4
    return (smoothed / smoothed.sum(0) * 4).log2()


def of_database(path: Path) -> dict[str, list[list[float]]]:
    """The counts of LIVER in a JASPAR database, rows A, C, G, T."""
    rows_of_factor = {}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        for name, identifier in LIVER.items():
            base, version = identifier.split(".")
            query = "SELECT d.row, d.col, d.val FROM MATRIX m JOIN MATRIX_DATA d ON d.ID = m.ID"
            query += " WHERE m.BASE_ID = ? AND m.VERSION = ? AND m.COLLECTION = 'CORE' ORDER BY d.row, d.col"
            cells = database.execute(query, (base, int(version))).fetchall()
            if not cells:
                raise ValueError(f"{path} has no matrix {identifier} of {name}")
            rows_of_factor[name] = [[value for row, _, value in cells if row == letter] for letter in "ACGT"]
    return rows_of_factor


def main() -> None:
    """Write the shipped matrices anew."""
    facts = {"source": f"JASPAR 2024 ({MATRICES.licence}), in {MATRICES.archive}", "identifiers": LIVER}
    text = json.dumps({**facts, "matrices": of_database(MATRICES.obtain())}, indent=None)
    write_whole(SHIPPED, (text.replace('"matrices"', '\n"matrices"') + "\n").encode())


if __name__ == "__main__":
    main()
