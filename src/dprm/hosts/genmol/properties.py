"""What a finished molecule is worth: its two benefits, and what is said of all molecules together.

    QED ∈ [0, 1]     (10 − SA)/9 ∈ [0, 1]     both 0 where the text is no molecule

validity   molecules of all texts
uniqueness different canonical SMILES of all molecules
diversity  1 − mean Tanimoto similarity of two different molecules, by Morgan fingerprints (radius 2, 2,048 bits)
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rdkit import Chem, RDConfig
from rdkit.Chem import QED, rdFingerprintGenerator

from dprm.hosts.genmol.brackets import MoleculeError, decode, mended

_BITS, _RADIUS = 2048, 2
_REMEMBERED = 200_000


class Molecule(NamedTuple):
    """A finished molecule.

    Attributes:
        smiles: canonical. qed, sa: benefits in [0, 1]. whole: nothing of its text had to be mended.
        clean: none of the structures that medicinal chemists avoid is in it (PAINS and Brenk filters); never rewarded.
    """

    smiles: str
    qed: float
    sa: float
    whole: bool
    clean: bool


@cache
def _sascorer() -> Any:
    """The scorer of synthetic accessibility that rdkit ships as a contribution."""
    path = Path(RDConfig.RDContribDir) / "SA_Score" / "sascorer.py"
    spec = importlib.util.spec_from_file_location("sascorer", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"this rdkit has no SA score ({path}): install rdkit from the package registry")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _alerts() -> Any:
    """Structures that react with everything, or that assays mistake for activity."""
    from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

    wanted = FilterCatalogParams()
    for catalog in (FilterCatalogParams.FilterCatalogs.PAINS, FilterCatalogParams.FilterCatalogs.BRENK):
        wanted.AddCatalog(catalog)
    return FilterCatalog(wanted)


def benefits(mol: Any) -> tuple[float, float]:
    """QED and (10 − SA)/9 of an rdkit molecule."""
    qed: Any = QED.qed
    return min(max(qed(mol), 0.0), 1.0), min(max((10.0 - _sascorer().calculateScore(mol)) / 9.0, 0.0), 1.0)


@lru_cache(maxsize=_REMEMBERED)
def molecule(text: str) -> Molecule | None:
    """The molecule of a bracket-SAFE text, mended as GenMol's sampler does; None where nothing is left.

    It is remembered, as properties take a while.
    """
    try:
        mol, whole = decode(text), True
    except MoleculeError:
        mol, whole = mended(text), False
    if mol is None:
        return None
    # Properties of what is written, so that a file that is read again gives the same numbers.
    smiles = Chem.MolToSmiles(mol)
    mol = Chem.MolFromSmiles(smiles)
    return None if mol is None else Molecule(smiles, *benefits(mol), whole, not _alerts().HasMatch(mol))


def of_set(smiles: Sequence[str], texts: int) -> dict[str, float]:
    """The metrics of all molecules together.

    Args:
        smiles: canonical, of the molecules there are. texts: how many texts they came of.
    """
    different = sorted(set(smiles))
    return {
        "validity": len(smiles) / max(1, texts),
        "uniqueness": len(different) / max(1, len(smiles)),
        "diversity": diversity(different),
    }


def diversity(smiles: Sequence[str]) -> float:
    """1 − mean Tanimoto similarity over all pairs; 0 for fewer than two molecules."""
    if len(smiles) < 2:
        return 0.0
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=_RADIUS, fpSize=_BITS)
    rows = [torch.from_numpy(generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(each))).float() for each in smiles]
    bits = torch.stack(rows)
    both = bits @ bits.T
    sizes = bits.sum(1)
    either = sizes.unsqueeze(0) + sizes.unsqueeze(1) - both
    similar = torch.where(either > 0, both / either.clamp(min=1.0), 1.0)
    pairs = len(smiles) * (len(smiles) - 1)
    return 1.0 - float((similar.sum() - similar.diagonal().sum()) / pairs)
