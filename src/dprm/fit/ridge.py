"""Ridge regression on comparisons that come in problems, its penalty chosen on problems it was not fitted on.

    w = (XᵀX + λI)⁻¹ Xᵀy

All branches of a problem are compared with the same native decoding: where that happened to succeed all differences are
low, where it failed all are high. This part of the noise, a third or more of it, is shared, so every row is taken less
θ times the mean of its problem (a regression with random effects):

    θ = 1 − (σ² / (σ² + n·ω²))^½,   σ² inside problems, ω² between them, n rows of a problem

What all comparisons have in common is no feature's business either: alternatives are worse on average because of how
they are drawn, and weights that say so say that the host is right. So there is an intercept without a penalty, and it
is not part of w.

Only the direction of w matters to a strength that is searched for afterwards. So λ is judged by the correlation of
prediction and target on every fifth of the problems, fitted on the other four, and the largest λ within one standard
error of the best is taken. Where no correlation is positive, w = 0: features that say nothing about other problems get
no weight. Columns are scaled to unit deviation first, rare ones less: what was seen a few times is not to be trusted
much. All of it follows from one XᵀX and Xᵀy a fold, about its means. Shapes: N rows, F features, P problems.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.noise import mix_rows

FOLDS = 5
PENALTIES = (1e1, 1e2, 1e3, 3e3, 1e4, 3e4, 1e5)
# A column of smaller deviation is taken as if it had this one.
_RARE = 0.1
# Rows worked on at a time: in double precision all the features would not fit.
_ROWS = 16_384


class Ridge(NamedTuple):
    """[F] float64 weights, the penalty that was chosen (inf: none helps), and what they tell about other problems.

    `explained` is the squared correlation with the target of problems left out, after the problems' share is taken off.
    """

    weight: Tensor
    penalty: float
    explained: float


def ridge(features: Tensor, target: Tensor, group: Tensor) -> Ridge:
    """Fit.

    Args:
        features: [N,F]. target: [N]. group: [N] int64, key of the problem of every row.
    """
    scale = features.std(0, correction=0).double().clamp(min=_RARE)
    problem = Problem.of(group)
    share = problem.shared(target.double())
    common = problem.means(features) * share.unsqueeze(1), problem.means(target) * share, share
    fold = mix_rows(group, 11) % FOLDS
    folds = [_moments(features, target, scale, common, problem.number, fold == k) for k in range(FOLDS)]
    gram, moment, total = (torch.stack(part).sum(0) for part in zip(*folds, strict=True))
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    result = {}
    for penalty in PENALTIES:
        fit, power = torch.zeros_like(total), torch.zeros_like(total)
        for own_gram, own_moment, _ in folds:
            weight = torch.linalg.solve(gram - own_gram + penalty * eye, moment - own_moment)
            fit, power = fit + weight @ own_moment, power + weight @ own_gram @ weight
        result[penalty] = float(fit / (power * total).sqrt().clamp(min=1e-12))
    best = max(result.values())
    if best <= 0:
        return Ridge(torch.zeros_like(scale), torch.inf, 0.0)
    least = max(0.0, best - (1.0 - best**2) * len(features) ** -0.5)
    penalty = max(each for each in PENALTIES if result[each] >= least)
    return Ridge(torch.linalg.solve(gram + penalty * eye, moment) / scale, penalty, result[penalty] ** 2)


class Problem(NamedTuple):
    """Which problem every row belongs to: [N] int64 in 0 … P − 1, and [P] float64, how many rows each has."""

    number: Tensor
    rows: Tensor

    @classmethod
    def of(cls, group: Tensor) -> Problem:
        """From the key of the problem of every row."""
        _, number = torch.unique(group, return_inverse=True)
        return cls(number, torch.bincount(number).double())

    def means(self, values: Tensor) -> Tensor:
        """[P,…] float64: means of [N,…]."""
        sums = torch.zeros(len(self.rows), *values.shape[1:], dtype=torch.float64, device=values.device)
        for start in range(0, len(values), _ROWS):
            sums.index_add_(0, self.number[start : start + _ROWS], values[start : start + _ROWS].double())
        return sums / self.rows.view(-1, *[1] * (values.dim() - 1))

    def shared(self, target: Tensor) -> Tensor:
        """[P] float64: θ of every problem; 0 where it has one row."""
        means = self.means(target)
        inside = (target - means[self.number]).square().sum() / max(1, len(target) - len(means))
        between = ((means - target.mean()).square() - inside / self.rows).mean().clamp(min=0.0)
        share = 1.0 - (inside / (inside + self.rows * between).clamp(min=1e-12)).sqrt()
        return torch.where(self.rows > 1, share, 0.0)


def _moments(
    features: Tensor,
    target: Tensor,
    scale: Tensor,
    common: tuple[Tensor, Tensor, Tensor],
    number: Tensor,
    inside: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """XᵀX, Xᵀy and yᵀy of some rows, less what an intercept makes of them.

    Args:
        common: [P,F], [P] and [P], what is taken off the rows of every problem: features, target, intercept.
        number: [N], the problem of every row. inside: [N] bool, which rows.
    """
    wide = len(scale)
    # One table of all products: those of the features, then the target, then the intercept.
    products = scale.new_zeros(wide + 2, wide + 2)
    places = inside.nonzero().flatten()
    for start in range(0, len(places), _ROWS):
        index = places[start : start + _ROWS]
        x = (features[index].double() - common[0][number[index]]) / scale
        y = target[index].double() - common[1][number[index]]
        row = torch.cat([x, y.unsqueeze(1), 1.0 - common[2][number[index]].unsqueeze(1)], dim=1)
        products += row.T @ row
    constant = products[-1]
    about = products - constant.unsqueeze(0) * constant.unsqueeze(1) / constant[-1].clamp(min=1e-12)
    return about[:wide, :wide], about[:wide, wide], about[wide, wide]
