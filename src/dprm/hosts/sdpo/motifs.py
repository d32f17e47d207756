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
def strands() -> Tensor:
    """[2K,4,W] log-odds of both strands, zeros after their end."""
    scores = [log_odds(matrix).float() for matrix in counts().values()]
    filters = torch.zeros(2, len(scores), 4, max(each.shape[1] for each in scores))
    for index, each in enumerate(scores):
        filters[0, index, :, : each.shape[1]] = each
        # Complement is the reverse of A, C, G, T.
        filters[1, index, :, : each.shape[1]] = each.flip(0, 1)
    return filters.flatten(0, 1)


def places(tokens: Tensor) -> Tensor:
    """[N,2K,L] the score of every matrix and strand from every place on; −∞ where it does not fit."""
    filters = strands().to(tokens.device)
    # A matrix that is shorter than the widest may stand at the very end: padding has no base and scores 0 there.
    padded = torch.nn.functional.pad(one_hot(tokens), (0, filters.shape[2] - 1))
    scores = torch.nn.functional.conv1d(padded, filters)
    return scores.masked_fill(~_fits(tokens.shape[1], filters.device), -torch.inf)


def scan(tokens: Tensor) -> Tensor:
    """[N,K] the best score of every factor in sequences [N,L], over places and strands."""
    return places(tokens).amax(2).view(len(tokens), 2, -1).amax(1)


def of_best(scores: Tensor) -> Tensor:
    """[N,…] in [0, 1], of the scores of both strands [N,2K,…]."""
    best = strands().amax(1).sum(1).view(2, -1)[0].to(scores.device)
    share = scores.view(len(scores), 2, -1, *scores.shape[2:]).amax(1).transpose(1, -1) / best
    return share.clamp(0, 1).mean(-1)


def _fits(length: int, device: torch.device) -> Tensor:
    """[2K,L] bool: where a matrix fits into the sequence."""
    widths = torch.tensor([matrix.shape[1] for matrix in counts().values()] * 2, device=device)
    return torch.arange(length, device=device) + widths.unsqueeze(1) <= length


def motif_score(tokens: Tensor) -> Tensor:
    """[N] in [0, 1]."""
    return of_best(places(tokens).amax(2))
