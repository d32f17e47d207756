"""What runs in the environment of the judges: SMILES in, numbers out. Nothing of dprm is imported here.

    python inside.py ASKED.json ANSWER.npz

ASKED has `smiles`, n of them that rdkit reads, and `properties`, names of ADMET-AI. ANSWER has `activations` [n,512] of
ChemNet, and `properties` [n,P]. A line `done of n` is printed after each piece.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import numpy

_PIECE = 500


def main(asked: Path, answer: Path) -> None:
    """Judge the molecules of a file."""
    told = json.loads(asked.read_text())
    smiles, names, lines = told["smiles"], told["properties"], sys.stdout
    activations, properties = [], []
    with contextlib.redirect_stdout(sys.stderr):  # Both packages print.
        from admet_ai import ADMETModel
        from fcd import get_predictions, load_ref_model

        chemnet = load_ref_model()
        admet = ADMETModel(include_physchem=False, drugbank_path=None, num_workers=0)
        for first in range(0, len(smiles), _PIECE):
            piece = smiles[first : first + _PIECE]
            activations.append(get_predictions(chemnet, piece, n_jobs=0))
            predicted = admet.predict(piece)
            if list(predicted.index) != piece:
                raise ValueError(f"ADMET-AI judged {len(predicted)} of {len(piece)} molecules")
            properties.append(predicted[names].to_numpy())
            print(first + len(piece), len(smiles), file=lines, flush=True)
    read, said = (numpy.concatenate(rows).astype(numpy.float32) for rows in (activations, properties))
    with answer.open("wb") as file:
        numpy.savez(file, activations=read, properties=said)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
