"""Generated molecules as files that a chemist can open: SDF with properties, or SMILES with a table of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rdkit import Chem
from rdkit.Chem.rdDepictor import Compute2DCoords

from dprm.hosts.genmol.properties import Molecule
from dprm.order.files import write_whole

Row = tuple[Molecule, Mapping[str, str]]
SDF, SMILES, TABLE = ".sdf", ".smi", ".csv"


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write molecules with their properties, in the form that the ending says: .sdf, .smi or .csv."""
    forms = {SDF: sdf, SMILES: smi, TABLE: table}
    if path.suffix not in forms:
        raise ValueError(f"out is {path}: expected a file that ends in {', '.join(forms)}")
    write_whole(path, forms[path.suffix](rows).encode())


def properties(row: Row) -> dict[str, str]:
    """Every property of a row, as text."""
    molecule, more = row
    return {"smiles": molecule.smiles, "qed": f"{molecule.qed:.4f}", "sa": f"{molecule.sa:.4f}", **more}


def sdf(rows: Sequence[Row]) -> str:
    """One record a molecule, its atoms in the plane."""
    text = io.StringIO()
    writer = Chem.SDWriter(text)
    for number, row in enumerate(rows, 1):
        mol = Chem.MolFromSmiles(row[0].smiles)
        Compute2DCoords(mol)
        mol.SetProp("_Name", f"dprm-{number}")
        for name, value in properties(row).items():
            mol.SetProp(name, value)
        writer.write(mol)
    writer.close()
    return text.getvalue()


def smi(rows: Sequence[Row]) -> str:
    """A SMILES and its name a line, as most programs read them."""
    return "".join(f"{row[0].smiles} dprm-{number}\n" for number, row in enumerate(rows, 1))


def table(rows: Sequence[Row]) -> str:
    """All properties, with a heading."""
    text = io.StringIO()
    listed = [properties(row) for row in rows]
    writer = csv.DictWriter(text, list(listed[0]) if listed else ["smiles", "qed", "sa"])
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()
