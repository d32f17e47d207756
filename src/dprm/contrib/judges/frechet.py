"""The Fréchet ChemNet distance of a set of molecules to another, with an interval.

    FCD = |μ − μ'|² + tr C + tr C' − 2 tr (C'^½ C C'^½)^½

μ and C are mean and covariance of the activations of ChemNet. A bootstrap would repeat molecules, and sets with repeats
are farther away; the interval is that of a jackknife, which leaves out one of g parts at a time:

    SE² = (g − 1)/g · Σ_j (FCD_(j) − mean FCD_(j))²

Shapes: n molecules, D = 512.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import Interval, student

_PARTS = 20
# Molecules that a distance needs, so that every part has a few.
LEAST = 2 * _PARTS


class Reference:
    """The molecules that others are compared with, by their activations [n,D]."""

    def __init__(self, activations: Tensor):
        self.mean, self.covariance = _moments(activations.double())
        values, vectors = torch.linalg.eigh(self.covariance)
        self._root = vectors @ (values.clamp(min=0).sqrt().unsqueeze(1) * vectors.T)

    def distance(self, mean: Tensor, covariance: Tensor) -> float:
        """FCD to a set of this mean [D] and covariance [D,D]."""
        both = torch.linalg.eigvalsh(self._root @ covariance @ self._root).clamp(min=0).sqrt().sum()
        apart = (mean - self.mean).square().sum()
        return float(apart + covariance.trace() + self.covariance.trace() - 2 * both)

    def interval(self, activations: Tensor, seed: int = 0) -> tuple[Interval, float]:
        """FCD of molecules [n,D], a row a molecule, with its 95 % interval; and the standard error."""
        if len(activations) < LEAST:
            raise ValueError(f"{len(activations)} molecules: a distance of sets needs at least {LEAST}")
        rows = activations.double()
        part = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)) % _PARTS
        left = torch.tensor([self.distance(*_moments(rows[part != out])) for out in range(_PARTS)])
        error = float(((left - left.mean()).square().sum() * (_PARTS - 1) / _PARTS).sqrt())
        whole, half = self.distance(*_moments(rows)), student(_PARTS - 1) * error
        return Interval(whole, whole - half, whole + half), error


def _moments(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [D] and covariance [D,D] of rows [n,D]."""
    return rows.mean(0), torch.cov(rows.T)
