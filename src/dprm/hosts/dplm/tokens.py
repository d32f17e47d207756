"""Tokens of two streams on one canvas: structure first, then sequence, residue i at i and at LONGEST + i.

A structure token is one of eight DSSP states, a code of three bits. Shapes: N domains, L positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.data.fasta import Alphabet

AMINO, STATES = "ACDEFGHIKLMNPQRSTVWY", "HBEGITSL"
BITS = 3
FIRST_STATE = len(AMINO)
MASK, PAD, VOCABULARY = 28, 29, 30
SHORTEST, LONGEST = 40, 128
LENGTH = 2 * LONGEST
RESIDUES = Alphabet(AMINO, "amino acids", SHORTEST, LONGEST)
STRUCTURE = torch.arange(LENGTH) < LONGEST
# Stream, and residue, of every position.
SIDES = (tuple(int(place >= LONGEST) for place in range(LENGTH)), tuple(place % LONGEST for place in range(LENGTH)))
_SHOWN = {MASK: "·", PAD: " "} | dict(enumerate(AMINO)) | {FIRST_STATE + i: s.lower() for i, s in enumerate(STATES)}


def encoded(sequences: list[str], structures: list[str]) -> Tensor:
    """[N,L] int64 canvases of domains; PAD after the last residue."""
    canvas = torch.full((len(sequences), LENGTH), PAD)
    for row, (letters, states) in enumerate(zip(sequences, structures, strict=True)):
        canvas[row, : len(states)] = torch.tensor([FIRST_STATE + STATES.index(state) for state in states])
        canvas[row, LONGEST : LONGEST + len(letters)] = torch.tensor([AMINO.index(letter) for letter in letters])
    return canvas


def shown(token: int) -> str:
    """A token as people read it: residues in capitals, structure in small letters."""
    return _SHOWN[token]


def streams(tokens: list[int]) -> tuple[str, str]:
    """Sequence and structure of one canvas; what is masked as `_`."""
    texts = (
        "".join("_" if token == MASK else _SHOWN[token] for token in part if token != PAD)
        for part in (tokens[LONGEST:], tokens[:LONGEST])
    )
    sequence, structure = texts
    return sequence, structure.upper()
