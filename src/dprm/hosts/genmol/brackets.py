"""Bracket-SAFE: a molecule as the text of its fragments, with the bonds between fragments as numbered brackets.

    CCOc1ccccc1   →   C<1>.O<1><2>.c1<2>ccccc1     (the bond <1> joins the two fragments that carry it)

SAFE writes a bond between fragments as a ring digit that opens in one fragment and closes in another. With brackets
these numbers have tokens of their own, and ring digits mean the same in every fragment. Fragments may stand in any
order. Reading needs rdkit alone; writing cuts bonds as safe-mol does (BRICS).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

from rdkit import Chem
from rdkit.rdBase import BlockLogs

# What is a token: a bracket atom, a numbered bracket, a ring closure, an atom, a bond, a branch, a new fragment.
TOKEN = re.compile(r"\[[^\[\]]+\]|<\d+>|%\d\d|Br|Cl|[BCNOPSFI]|[bcnops]|\d|[-=#:/\\().]")
_RING = re.compile(r"\d|%\d\d")
# Ring numbers that SMILES has.
_MOST_NUMBERS = 99
# Why a text is left out.
UNREADABLE, SALT, UNCUT = "no molecule", "several components, a salt or a mixture", "no fragments"
TOO_LONG, RARE = "too long for the canvas", "a token that is not in the vocabulary"
CHANGED = "does not come back as the same molecule"


class MoleculeError(ValueError):
    """A text that is no molecule this host can write; the message says why, and `reason` what kind of why."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


def tokenize(text: str) -> list[str]:
    """The tokens of a SMILES, SAFE or bracket-SAFE text.

    Raises:
        MoleculeError: where a character belongs to none.
    """
    tokens = TOKEN.findall(text)
    if "".join(tokens) != text:
        rest = TOKEN.sub(" ", text).split()
        raise MoleculeError(UNREADABLE, f"{text[:60]!r} has {rest[0] if rest else text!r}, which is no token")
    return tokens


def molecule_of(smiles: str) -> Any:
    """The rdkit molecule of a SMILES.

    Raises:
        MoleculeError: it cannot be read, is empty, or has several components.
    """
    mol = _read(smiles)
    if mol is None:
        raise MoleculeError(UNREADABLE, f"{smiles[:60]!r} is no SMILES that rdkit reads")
    if not mol.GetNumAtoms():
        raise MoleculeError(UNREADABLE, f"{smiles[:60]!r} has no atoms")
    components = len(Chem.GetMolFrags(mol))
    if components > 1:
        raise MoleculeError(SALT, f"{smiles[:60]!r} has {components} components: expected one molecule")
    return mol


def _read(smiles: str) -> Any:
    """As rdkit reads it, without what rdkit says of it."""
    with BlockLogs():
        return Chem.MolFromSmiles(smiles)


def encode(smiles: str) -> str:
    """The bracket-SAFE of a SMILES.

    Raises:
        MoleculeError: no molecule, or one whose bonds safe-mol cannot cut.
        ValueError: safe-mol is not installed.
    """
    mol, converter = molecule_of(smiles), _converter()
    try:
        text = converter.encoder(Chem.MolToSmiles(mol), canonical=True, allow_empty=True)
    except Exception as error:  # safe-mol has several kinds, of several packages.
        raise MoleculeError(UNCUT, f"{smiles[:60]!r} cannot be cut: {str(error)[:80]}") from error
    return bracketed(text)


@cache
def _converter() -> Any:
    try:
        from safe import SAFEConverter
    except ImportError as error:
        raise ValueError(f"writing molecules as SAFE needs {error.name}: pip install 'dprm[genmol]'") from None
    return SAFEConverter(slicer="brics")


def bracketed(safe: str) -> str:
    """The bracket-SAFE of a SAFE text: ring numbers that a fragment leaves open become numbered brackets."""
    number: dict[str, int] = {}
    fragments = []
    for fragment in safe.split("."):
        tokens = tokenize(fragment)
        seen = Counter(token for token in tokens if _RING.fullmatch(token))
        for label, times in seen.items():
            if times % 2:
                number.setdefault(label, len(number) + 1)
        fragments.append("".join(f"<{number[t]}>" if seen.get(t, 0) % 2 else t for t in tokens))
    return ".".join(fragments)


def to_smiles(text: str) -> str:
    """The SMILES of a bracket-SAFE text: every bracket becomes a ring number that no fragment uses itself.

    Raises:
        MoleculeError: a bracket has no partner, or there are more numbers than SMILES has.
    """
    tokens = tokenize(text)
    brackets = Counter(token for token in tokens if token[0] == "<")
    alone = [token for token, times in brackets.items() if times != 2]
    if alone:
        raise MoleculeError(UNREADABLE, f"{text[:60]!r} has {alone[0]} {brackets[alone[0]]} times: a bond has two ends")
    largest = max((int(token.lstrip("%")) for token in tokens if _RING.fullmatch(token)), default=0)
    if largest + len(brackets) > _MOST_NUMBERS:
        numbers = f"{largest + len(brackets)} ring numbers: SMILES has {_MOST_NUMBERS}"
        raise MoleculeError(TOO_LONG, f"{text[:60]!r} needs {numbers}")
    number = {bracket: largest + index for index, bracket in enumerate(brackets, 1)}
    return "".join(_ring_number(number[token]) if token in number else token for token in tokens)


def _ring_number(number: int) -> str:
    return str(number) if number < 10 else f"%{number}"


def decode(text: str) -> Any:
    """The rdkit molecule of a bracket-SAFE text, nothing mended.

    Raises:
        MoleculeError: it is none, or falls into several components.
    """
    return molecule_of(to_smiles(text))


def mended(text: str) -> Any:
    """The rdkit molecule of a damaged bracket-SAFE text, as GenMol's sampler mends it, or None.

    Fragments that are none by themselves are left out, brackets without a partner become hydrogens, and of several
    components the largest stays.
    """
    fragments = [fragment for fragment in text.split(".") if fragment and _readable(fragment)]
    while True:
        brackets = Counter(re.findall(r"<\d+>", ".".join(fragments)))
        alone = [bracket for bracket, times in brackets.items() if times != 2]
        if not alone:
            break
        fragments = [re.sub("|".join(map(re.escape, alone)), "", fragment) for fragment in fragments]
    if not fragments:
        return None
    mol = _read(to_smiles(".".join(fragments)))
    if mol is None or not mol.GetNumAtoms():
        return None
    return max(Chem.GetMolFrags(mol, asMols=True), key=lambda part: part.GetNumAtoms())


def _readable(fragment: str) -> bool:
    """Whether a fragment is a molecule when its brackets are open."""
    mol = _read(re.sub(r"<\d+>", "", fragment))
    return mol is not None and mol.GetNumAtoms() > 0
