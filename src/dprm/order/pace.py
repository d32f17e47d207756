"""Whose turn it is when unsure positions are spread evenly over the steps that are left.

Confidence order reveals all that is sure first and then many unsure positions together, each likely by itself and
unlikely with the others. At the same price an order may take a few unsure ones at a time and fill up with sure ones:

    turn = the ⌈U/T⌉ surest of the U candidates below a level, T steps being left;  first = the ⌈U/2T⌉ surest

Shapes: B rows, L positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEVELS = (0.9, 0.99, 0.999, 0.9999)
# What `paced` gives, by name.
TURNS = tuple(f"{turn} below {level:g}" for level in LEVELS for turn in ("turn", "first"))


def paced(confidence: Tensor, candidates: Tensor, budget: Tensor) -> Tensor:
    """[B,L,8] bool: turn and first for every level, in turn.

    Args:
        confidence: [B,L]. candidates: [B,L] bool. budget: [B] int64, positions a step.
    """
    psi = torch.where(candidates, confidence, -1.0)
    ordered = psi.sort(dim=1, descending=True).values
    many = candidates.sum(1, keepdim=True)
    steps = -(-many // budget.clamp(min=1).unsqueeze(1)).clamp(max=-1)
    sure = torch.stack([(psi >= level).sum(1) for level in LEVELS], dim=1)
    unsure = many - sure
    share = torch.stack([-(-unsure // steps), -(-unsure // (2 * steps))], dim=2)
    edge = ordered.gather(1, (sure.unsqueeze(2) + share - 1).clamp(min=0).flatten(1))
    below = torch.stack([psi < level for level in LEVELS for _ in range(2)], dim=2)
    return below & (psi.unsqueeze(2) >= edge.unsqueeze(1)) & candidates.unsqueeze(2)
