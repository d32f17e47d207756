"""What a head is learned from in traffic: how a choice differs from another one drawn on the same canvas.

    x = Σ φ_i of what was revealed − Σ φ_j of a second draw,   E[x | canvas] = 0

Both are drawn by the same law, so nothing that the canvas, the prompt or the policy is like can be in x: where rewards
go with x, the choice made them. Shapes: B requests, L positions of a block, F features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.order.head import Head, Sight
from dprm.order.noise import mix_rows
from dprm.order.order import Order
from dprm.order.reading import Reading

_SECOND = 7


def contrast(
    order: Order,
    reading: Reading,
    candidates: Tensor,
    own: Tensor,
    revealed: Tensor,
    progress: Tensor,
    aux: Tensor | None,
    seeds: Tensor,
) -> Tensor:
    """x [B,F] float32 of a step that was drawn.

    Args:
        candidates, own, revealed: [B,L] bool; own, the engine's choice, stands where a draw changes nothing.
        seeds: [B] int64, of the first draw.
    """
    budget = own.sum(1)
    second = order.select(reading, candidates, budget, progress, aux=aux, seed=mix_rows(seeds, _SECOND))
    features = Head.empty(order.cells.aux).features(Sight.of(reading, candidates, budget, progress, aux))
    other = torch.where(second.changed.unsqueeze(1), second.mask, own)
    return ((revealed.float() - other.float()).unsqueeze(2) * features).sum(1)
