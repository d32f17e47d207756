"""Sets of molecules: those of a file, each as often as it was made, and real ones that no model was trained on."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import torch
from rdkit import Chem

from dprm.data.draws import Draws
from dprm.data.splits import in_split
from dprm.hosts.genmol.brackets import MoleculeError, molecule_of
from dprm.hosts.genmol.data import MOSES, key_of, listed


def molecules_of(path: Path) -> tuple[Counter[str], int]:
    """Canonical SMILES of a file, how often each was made, and how many lines are no molecule.

    A table needs a column `smiles` and may have one `times`; other files have a SMILES first in every line.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        if path.suffix == ".csv":
            rows = [(row.get("smiles") or "", int(row.get("times") or 1)) for row in csv.DictReader(file)]
        else:
            rows = [(line.split()[0], 1) for line in file if line.strip()]
    made: Counter[str] = Counter()
    for smiles, times in rows:
        try:
            made[_canonical(smiles)] += times
        except MoleculeError:
            made[""] += times
    left_out = made.pop("", 0)
    if not made:
        raise ValueError(f"{path} has no molecule: expected a column smiles, or a SMILES first in every line")
    return made, left_out


def held_out(count: int, seed: int = 0) -> list[str]:
    """So many molecules of MOSES that the model was not trained on."""
    smiles, found = list(listed(MOSES.obtain())), dict[str, None]()
    for row in Draws("judges", seed).permutations(len(smiles)).tolist():
        try:
            text = _canonical(smiles[row])
        except MoleculeError:
            continue
        if bool(in_split(torch.tensor([key_of(text)]), "test")):
            found[text] = None
        if len(found) == count:
            break
    return list(found)


def _canonical(smiles: str) -> str:
    text: str = Chem.MolToSmiles(molecule_of(smiles))
    return text
