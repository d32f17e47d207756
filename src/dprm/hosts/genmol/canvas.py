"""The canvas of a molecule: one token an atom, bond, branch, ring closure or bracket; what follows the text is blank.

How many positions a molecule has is drawn from the lengths of the training molecules and is part of the problem: the
blanks behind it are visible from the start, as a pad is. Shapes: N molecules, L = 56 positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.hosts.genmol.brackets import RARE, TOO_LONG, MoleculeError, tokenize

LENGTH = 56
ATOMS = ("C", "N", "O", "S", "F", "Cl", "Br", "I", "P", "B")
AROMATIC = ("c", "n", "o", "s", "p")
BRACKET_ATOMS = (
    "[nH]", "[N+]", "[O-]", "[n+]", "[NH+]", "[NH2+]", "[NH3+]", "[nH+]", "[N-]", "[n-]", "[S+]", "[S-]", "[P+]",
    "[C@H]", "[C@@H]", "[C@]", "[C@@]", "[S@]", "[S@@]", "[Si]", "[B-]", "[Se]", "[se]", "[2H]",
)  # fmt: skip
RINGS = ("1", "2", "3", "4", "5", "6", "7", "8", "9")
BRACKETS = tuple(f"<{number}>" for number in range(1, 13))
BONDS = ("-", "=", "#", "/", "\\")
BRANCHES = ("(", ")")
NEXT = "."
TEXTS = (*ATOMS, *AROMATIC, *BRACKET_ATOMS, *RINGS, *BRACKETS, *BONDS, *BRANCHES, NEXT)
TOKEN_OF = {text: token for token, text in enumerate(TEXTS)}
BLANK, MASK = len(TEXTS), len(TEXTS) + 1
VOCABULARY = MASK + 1

# What a token is, for the cells: carbon, aromatic carbon, another atom, an aromatic one, ring closure, bracket or next
# fragment, bond, branch.
CLASSES = 8
_CLASS = {
    **dict.fromkeys(ATOMS + BRACKET_ATOMS, 2),
    **dict.fromkeys((*AROMATIC, "[nH]", "[n+]", "[nH+]", "[n-]", "[se]"), 3),
    "C": 0,
    "c": 1,
    **dict.fromkeys(RINGS, 4),
    **dict.fromkeys((*BRACKETS, NEXT), 5),
    **dict.fromkeys(BONDS, 6),
    **dict.fromkeys(BRANCHES, 7),
}
CLASS_OF = (*(_CLASS[text] for text in TEXTS), 0, 0)

# How many of 200,000 molecules of the MOSES training set have 13, 14, … 56 tokens (`dprm data genmol`).
SHORTEST = 13
LENGTHS: tuple[int, ...] = (
    2, 1, 1, 5, 8, 0, 4, 10, 22, 45, 76, 109, 182, 188, 293, 324, 487, 709, 1056, 1455, 2211, 3123, 4173, 5015,
    6252, 7581, 8944, 9928, 10589, 11222, 12121, 12512, 13018, 12633, 12575, 12084, 11161, 9888, 8364, 6770,
    4949, 3553, 2465, 1691,
)  # fmt: skip


def write(text: str) -> list[int]:
    """The tokens of a bracket-SAFE text, without blanks.

    Raises:
        MoleculeError: the text is too long, or has a token that is not in the vocabulary.
    """
    texts = tokenize(text)
    if len(texts) > LENGTH:
        raise MoleculeError(TOO_LONG, f"it takes {len(texts)} tokens: expected at most {LENGTH}")
    unknown = [each for each in texts if each not in TOKEN_OF]
    if unknown:
        raise MoleculeError(RARE, f"token {unknown[0]!r} is not in the vocabulary of {len(TEXTS)}")
    return [TOKEN_OF[each] for each in texts]


def read(tokens: Sequence[int]) -> str:
    """The bracket-SAFE text of one canvas; `?` where it is still masked."""
    return "".join(TEXTS[token] if token < len(TEXTS) else "?" for token in tokens if token != BLANK)


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """[N,L] uint8 canvases of token lists."""
    return torch.tensor([[*row, *[BLANK] * (LENGTH - len(row))] for row in rows], dtype=torch.uint8).view(-1, LENGTH)


def masked(lengths: Tensor) -> Tensor:
    """[N,L] int64 canvases with so many masks each."""
    place = torch.arange(LENGTH, device=lengths.device)
    return torch.where(place < lengths.unsqueeze(1), MASK, BLANK)


def drawn_lengths(draws: Draws, count: int) -> Tensor:
    """[N] int64, lengths with the frequencies of the training molecules."""
    upper = torch.tensor(LENGTHS).cumsum(0)
    return SHORTEST + torch.searchsorted(upper, draws.below(int(upper[-1]), count), right=True)
