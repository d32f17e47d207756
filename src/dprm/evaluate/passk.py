"""pass@K: the chance that at least one of K samples solves a problem.

From n samples of a problem, c of them successes in the Boolean row S:

    first K     max_{j≤K} S_j                  what the paper reports; K < n leaves samples unused
    unbiased    1 − C(n−c, K) / C(n, K)        its mean over all choices of K samples: the same expectation, less noise

A problem's statistic is the mean over K = 1, 2, 4, 8, 16, 32; intervals resample problems.
Shapes: N problems, n samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import resampled_means

KS = (1, 2, 4, 8, 16, 32)
ESTIMATORS = ("first", "unbiased")


def pass_at_k(success: Tensor, ks: Sequence[int] = KS, estimator: str = "unbiased") -> Tensor:
    """pass@K of every problem, [N, len(ks)] float64.

    Args:
        success: [N,n] bool, in the order of sampling. ks: each from 1 to n.
        estimator: "first" or "unbiased".
    """
    if success.dim() != 2 or success.dtype != torch.bool:
        raise ValueError(f"success is {success.dtype} {tuple(success.shape)}: expected bool [problems, samples]")
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator is {estimator!r}: expected one of {', '.join(ESTIMATORS)}")
    samples = success.shape[1]
    for k in ks:
        if not 1 <= k <= samples:
            raise ValueError(f"k is {k}: expected 1 … {samples}, the samples of each problem")
    column = torch.tensor(ks, dtype=torch.int64) - 1
    if estimator == "first":
        return (success.cpu().int().cumsum(1) > 0).double()[:, column]
    # C(n−c, K)/C(n, K) = Π_{j<K} (n−c−j)/(n−j): factors in [0, 1], where binomials would overflow.
    drawn = torch.arange(samples, dtype=torch.float64)
    failures = samples - success.cpu().sum(1, keepdim=True)
    missed = ((failures - drawn).clamp(min=0) / (samples - drawn)).cumprod(1)
    return 1.0 - missed[:, column]


def mean_pass(success: Tensor, ks: Sequence[int] = KS, estimator: str = "unbiased") -> Tensor:
    """p̄_e, the mean of pass@K over K, of every problem e: [N] float64."""
    return pass_at_k(success, ks, estimator).mean(1)


def pass_table(success: Tensor, ks: Sequence[int] = KS, resamples: int = 2000) -> dict[str, dict[str, Any]]:
    """Mean over problems of pass@K for every K with its 95 % interval, and their mean, under both estimators."""
    table: dict[str, dict[str, Any]] = {}
    for estimator in ESTIMATORS:
        each = pass_at_k(success, ks, estimator)
        columns, resampled = each.mean(0), resampled_means(each, resamples)
        ends = torch.quantile(resampled, torch.tensor([0.025, 0.975], dtype=torch.float64), dim=0)
        table[estimator] = {str(k): value for k, value in zip(ks, columns.tolist())} | {"mean": columns.mean().item()}
        table[estimator]["intervals"] = {str(k): pair for k, pair in zip(ks, ends.T.tolist())}
    return table
