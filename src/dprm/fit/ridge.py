"""Ridge regression whose penalty is chosen on problems it was not fitted on.

    w = (XᵀX + λI)⁻¹ Xᵀy,   λ from the squared error on every fifth of the problems, fitted on the other four

Columns are scaled to unit deviation first, rare ones less: what was seen a few times is not to be trusted much. λ = ∞,
that is w = 0, is always among the choices: features that say nothing about other problems get no weight. All of it
follows from one XᵀX and Xᵀy a fold. Shapes: N rows, F features.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.noise import mix_rows

FOLDS = 5
PENALTIES = (1e1, 1e2, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
# A column of smaller deviation is taken as if it had this one.
_RARE = 0.1


class Ridge(NamedTuple):
    """[F] float64 weights, the penalty that was chosen (inf: none helps), and what they explain on other problems."""

    weight: Tensor
    penalty: float
    explained: float


def ridge(features: Tensor, target: Tensor, group: Tensor) -> Ridge:
    """Fit.

    Args:
        features: [N,F]. target: [N]. group: [N] int64, key of the problem of every row.
    """
    scale = features.std(0).clamp(min=_RARE).double()
    fold = mix_rows(group, 11) % FOLDS
    folds = [_moments(features[fold == k], target[fold == k], scale) for k in range(FOLDS)]
    gram, moment, total = (torch.stack(part).sum(0) for part in zip(*folds, strict=True))
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    errors = {torch.inf: float(total)}
    for penalty in PENALTIES:
        error = torch.zeros_like(total)
        for own_gram, own_moment, own_total in folds:
            weight = torch.linalg.solve(gram - own_gram + penalty * eye, moment - own_moment)
            error += own_total - 2.0 * weight @ own_moment + weight @ own_gram @ weight
        errors[penalty] = float(error)
    penalty = min(errors, key=lambda each: errors[each])
    if penalty == torch.inf:
        return Ridge(torch.zeros_like(scale), penalty, 0.0)
    weight = torch.linalg.solve(gram + penalty * eye, moment) / scale
    return Ridge(weight, penalty, 1.0 - errors[penalty] / errors[torch.inf])


def _moments(features: Tensor, target: Tensor, scale: Tensor, rows: int = 16_384) -> tuple[Tensor, Tensor, Tensor]:
    """XᵀX, Xᵀy and yᵀy, in pieces: in double precision the features would not all fit."""
    gram = scale.new_zeros(len(scale), len(scale))
    moment, total = torch.zeros_like(scale), scale.new_zeros(())
    for start in range(0, len(features), rows):
        x, y = features[start : start + rows].double() / scale, target[start : start + rows].double()
        gram, moment, total = gram + x.T @ x, moment + x.T @ y, total + y @ y
    return gram, moment, total
