"""Generated molecules as files that a chemist can open: SDF with properties, SMILES, a table, or a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rdkit import Chem
from rdkit.Chem.rdDepictor import Compute2DCoords

from dprm.hosts.genmol.properties import Molecule, molecule
from dprm.order.files import write_whole

Row = tuple[Molecule, Mapping[str, str]]
# Molecules of a picture, in a row of it, and pixels of each.
_DRAWN, _ACROSS, _WIDE, _HIGH = 24, 6, 200, 160


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write molecules with their properties, in the form that the ending says."""
    if path.suffix not in FORMS:
        raise ValueError(f"out is {path}: expected a file that ends in {', '.join(FORMS)}")
    write_whole(path, FORMS[path.suffix](rows).encode())


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


def picture(rows: Sequence[Row]) -> str:
    """The first molecules in a grid, each with its benefits, as SVG."""
    return grid([molecule.smiles for molecule, _ in rows[:_DRAWN]])


def grid(smiles: Sequence[str]) -> str:
    """Molecules in a grid, each with its benefits, as SVG; what is none is left out."""
    from rdkit.Chem.Draw.rdMolDraw2D import MolDraw2DSVG

    made = [molecule(each) for each in smiles]
    shown = [each for each in made if each is not None]
    down = max(1, -(-len(shown) // _ACROSS))
    drawing = MolDraw2DSVG(_ACROSS * _WIDE, down * _HIGH, _WIDE, _HIGH)
    options: Any = drawing.drawOptions()
    options.legendFontSize = 14
    mols = [Chem.MolFromSmiles(each.smiles) for each in shown]
    if mols:
        drawing.DrawMolecules(mols, legends=[f"QED {each.qed:.2f}   SA {each.sa:.2f}" for each in shown])
    drawing.FinishDrawing()
    svg: str = drawing.GetDrawingText()
    return svg


FORMS = {".sdf": sdf, ".smi": smi, ".csv": table, ".svg": picture}
