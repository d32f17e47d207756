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
    shown = values.unsqueeze(-1) >= powers
    shown[..., -1] = True
    return values.unsqueeze(-1) // powers % 10, shown


def pack(tokens: Tensor, kept: Tensor, length: int, filler: int) -> tuple[Tensor, Tensor]:
    """Push the kept tokens of every row together.

    Args:
        tokens, kept: [N,K] int64 and bool.

    Returns:
        [N,length], filled up with `filler`, and fits [N] bool: whether all kept tokens have a place.
    """
    place = kept.cumsum(1) - 1
    fits = place[:, -1] < length
    # What is left out, or does not fit, goes to one extra column that is cut off.
    place = torch.where(kept, place, length).clamp(max=length)
    packed = torch.full((len(tokens), length + 1), filler, device=tokens.device).scatter_(1, place, tokens)
    return packed[:, :length], fits


def spell(tokens: Sequence[int], characters: str, end: int) -> str:
    """The text of some tokens up to the first `end`; `?` where a token is no character."""
    text = ""
    for token in tokens:
        if token == end:
            break
        text += characters[token] if token < len(characters) else "?"
    return text
