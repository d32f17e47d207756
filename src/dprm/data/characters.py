"""Text on a canvas, character by character: numbers as digits, characters pushed together, tokens read back.

Shapes: N texts, K characters before packing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def digits(values: Tensor, places: int) -> tuple[Tensor, Tensor]:
    """The last decimal digits of values [...] as [..., places], and which of them are not leading zeros."""
    powers = 10 ** torch.arange(places - 1, -1, -1, device=values.device)
    visible = values.unsqueeze(-1) >= powers
    visible[..., -1] = True
    return values.unsqueeze(-1) // powers % 10, visible


def pack(tokens: Tensor, mask: Tensor, length: int, filler: int) -> tuple[Tensor, Tensor]:
    """Push the tokens of every row that the mask has together.

    Args:
        tokens, mask: [N,K] int64 and bool.

    Returns:
        [N,length], filled up with `filler`, and fits [N] bool: whether all of them have room.
    """
    column = mask.cumsum(1) - 1
    fits = column[:, -1] < length
    # What is left out, or does not fit, goes to one extra column that is cut off.
    column = torch.where(mask, column, length).clamp(max=length)
    packed = torch.full((len(tokens), length + 1), filler, device=tokens.device).scatter_(1, column, tokens)
    return packed[:, :length], fits


def spell(tokens: Sequence[int], characters: str, end: int) -> str:
    """The text of some tokens up to the first `end`; `?` where a token is no character."""
    text = ""
    for token in tokens:
        if token == end:
            break
        text += characters[token] if token < len(characters) else "?"
    return text
