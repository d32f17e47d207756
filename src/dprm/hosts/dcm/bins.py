"""From counts to bins: which genes a cell is described by, and between which counts a bin lies.

    bin = 0 where the count is 0, else 1 + number of cuts ≤ count

Genes are those whose log(1 + count) varies most, and cuts are the inner 31-quantiles of their positive counts; both are
fitted on training cells only. Shapes: N cells, G genes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy
import torch
from torch import Tensor

GENES, QUANTILES, MOST_CUTS = 1000, 31, 13


@dataclass(frozen=True)
class Bins:
    """Genes by name, and the least count of every bin but the first two."""

    genes: tuple[str, ...]
    cuts: tuple[float, ...]

    @property
    def top(self) -> int:
        """The largest bin."""
        return len(self.cuts) + 1

    def of(self, counts: numpy.ndarray) -> Tensor:
        """[N,G] uint8, the bins of counts [N,G] of these genes."""
        number = numpy.searchsorted(numpy.asarray(self.cuts), counts, side="right") + 1
        return torch.from_numpy(numpy.where(counts > 0, number, 0).astype(numpy.uint8))

    @classmethod
    def fitted(cls, counts: numpy.ndarray, genes: list[str]) -> Bins:
        """From the counts [N,G] of training cells.

        Raises:
            ValueError: fewer than two genes vary.
        """
        variance = numpy.log1p(counts).var(0)
        varying = int((variance > 0).sum())
        if varying < 2:
            raise ValueError(f"only {varying} genes vary between {len(counts)} training cells: expected at least 2")
        best = numpy.sort(numpy.argsort(-variance, kind="stable")[: min(GENES, varying)])
        positive = counts[:, best]
        positive = positive[positive > 0]
        levels = numpy.quantile(positive, numpy.arange(1, QUANTILES) / QUANTILES, method="lower")
        cuts = numpy.unique(levels[levels > positive.min()])
        if len(cuts) > MOST_CUTS:
            cuts = cuts[numpy.linspace(0, len(cuts) - 1, MOST_CUTS).round().astype(int)]
        return cls(tuple(genes[column] for column in best), tuple(float(cut) for cut in cuts))
