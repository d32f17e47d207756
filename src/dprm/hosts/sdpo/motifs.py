"""The rewarded oracle: how well a sequence binds the factors of liver cells, by their matrices alone.

    s_k = max over places and both strands of Σ_j log2 p_kj(base)/(1/4)
    score = mean over factors of clip(s_k / best_k, 0, 1)           best_k = the largest score there is

One convolution with all matrices and their reverse complements. Shapes: N sequences, L bases, K factors, W width.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from dprm.hosts.sdpo.bases import one_hot
from dprm.hosts.sdpo.matrices import counts, log_odds


@cache
def _filters() -> tuple[Tensor, Tensor]:
    """[2K,4,W] log-odds of both strands, zeros after their end; and [K] the best score of each factor."""
    scores = [log_odds(matrix).float() for matrix in counts().values()]
    width = max(each.shape[1] for each in scores)
    strands = torch.zeros(2, len(scores), 4, width)
    for index, each in enumerate(scores):
        strands[0, index, :, : each.shape[1]] = each
        # Complement is the reverse of A, C, G, T.
        strands[1, index, :, : each.shape[1]] = each.flip(0, 1)
    return strands.flatten(0, 1), torch.stack([each.amax(0).sum() for each in scores])


def scan(tokens: Tensor) -> Tensor:
    """[N,K] the best score of every factor in sequences [N,L], over places and strands."""
    filters, best = _filters()
    filters = filters.to(tokens.device)
    # A matrix that is shorter than the widest may stand at the very end: padding has no base and scores 0 there.
    padded = torch.nn.functional.pad(one_hot(tokens), (0, filters.shape[2] - 1))
    scores = torch.nn.functional.conv1d(padded, filters)
    fits = _fits(tokens.shape[1], filters.device)
    return scores.masked_fill(~fits, -torch.inf).amax(2).view(len(tokens), 2, len(best)).amax(1)


def _fits(length: int, device: torch.device) -> Tensor:
    """[2K,L] bool: where a matrix fits into the sequence."""
    widths = torch.tensor([matrix.shape[1] for matrix in counts().values()] * 2, device=device)
    return torch.arange(length, device=device) + widths.unsqueeze(1) <= length


def motif_score(tokens: Tensor) -> Tensor:
    """[N] in [0, 1]."""
    best = _filters()[1].to(tokens.device)
    return (scan(tokens) / best).clamp(0, 1).mean(1)
