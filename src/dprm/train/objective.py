"""Objectives: the loss of a training step, a function of the model's logits and of the canvases they were given for.

    masked cross-entropy:   loss = (1/B) Σ_b (1/|M_b|) Σ_{i∈M_b} −log p_θ(x⁰_i | x_t)

An objective with settings is a frozen dataclass with `__call__`, such as `wdce.Wdce`: a checkpoint says which it was.
Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dprm.train.masks import Canvases

# (logits [B,L,V], canvases) → the loss. What canvases hold besides their masks is between a law and its objective.
Objective = Callable[[Tensor, Any], Tensor]


def masked_loss(logits: Tensor, clean: Tensor, masked: Tensor) -> Tensor:
    """[B] mean cross-entropy over the masked positions of each row; every row must have one."""
    loss = F.cross_entropy(logits.float().flatten(0, 1), clean.flatten(), reduction="none").view(clean.shape)
    return (loss * masked).sum(1) / masked.sum(1)


def masked_cross_entropy(logits: Tensor, canvases: Canvases) -> Tensor:
    """The objective of masked diffusion."""
    return masked_loss(logits, canvases.clean, canvases.masked).mean()


def likelihood_bound(logits: Tensor, clean: Tensor, masked: Tensor, positions: Tensor) -> Tensor:
    """[B] float64 estimate of a lower bound on log p(x), from one mask of every row.

        log p(x) ≥ E_M [ (n/|M|) Σ_{j∈M} log p(x_j | x without M) ]     n response positions, |M| uniform on 1 … n

    The bound is that of an order whose prefixes are the complements of M: a random order for random masks, the order of
    the rollout for prefixes of that order.

    Args:
        logits: [B,L,V] at the masked canvases. clean: [B,L]. masked: [B,L] bool, at least one a row.
        positions: [B] int, n.
    """
    return -positions * masked_loss(logits, clean, masked).double()


def log_ratio(reference: list[Tensor], present: list[Tensor]) -> Tensor:
    """[B] log_rnd = log p_ref − log p_cur: the mean over masks of the difference of two bounds on the same masks."""
    return (torch.stack(reference) - torch.stack(present)).mean(0)
