"""Tokens of DNA: A, C, G, T, and the mask. Shapes: N sequences, L = 200 bases."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dprm.data.fasta import Alphabet

LETTERS = "ACGT"
MASK, VOCABULARY, LENGTH = 4, 5, 200
_UNKNOWN = {"N": "an unknown base cannot be scored"}
DNA = Alphabet(LETTERS, "bases", LENGTH, LENGTH, unknown=_UNKNOWN)
# With bases to be designed.
DESIGNED = Alphabet(LETTERS, "bases", LENGTH, LENGTH, masks="_", unknown=_UNKNOWN)


def encoded(sequences: list[str]) -> Tensor:
    """[N,L] int64 tokens of sequences of one length in LETTERS."""
    letters = np.frombuffer("".join(sequences).encode(), dtype=np.uint8).reshape(len(sequences), -1)
    table = np.full(256, MASK, dtype=np.int64)
    table[list(LETTERS.encode())] = range(4)
    return torch.from_numpy(table[letters])


def decoded(tokens: Tensor) -> list[str]:
    """The letters of tokens [N,L]; what is masked as N."""
    return ["".join(f"{LETTERS}N"[token] for token in row) for row in tokens.tolist()]


def one_hot(tokens: Tensor) -> Tensor:
    """[N,4,L] float32; zeros where it is masked."""
    return torch.nn.functional.one_hot(tokens, VOCABULARY)[..., :4].transpose(1, 2).float()


def word_counts(tokens: Tensor, length: int = 3) -> Tensor:
    """[N, 4^length] int64: how often every word of so many bases comes in a sequence [N,L] without masks."""
    windows = tokens.unfold(1, length, 1)
    word = (windows * 4 ** torch.arange(length - 1, -1, -1, device=tokens.device)).sum(2)
    counts = torch.zeros(len(tokens), 4**length, dtype=torch.int64, device=tokens.device)
    return counts.scatter_add_(1, word, torch.ones_like(word))
