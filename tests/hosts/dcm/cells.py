"""Cells of two kinds, small: counts in blocks of genes, and a host around a model that was never trained."""

from __future__ import annotations

import numpy
import torch

from dprm.hosts.dcm.bins import Bins
from dprm.hosts.dcm.host import SingleCells
from dprm.hosts.dcm.model import CellConfig, CellModel
from dprm.train.denoiser import Denoiser

GENES = 24


def counts(cells: int, seed: int = 0) -> numpy.ndarray:
    """[N,24] counts: even cells express the first half of the genes, odd ones the second."""
    draws = numpy.random.default_rng(seed)
    level = numpy.where((numpy.arange(GENES) < GENES // 2) == (numpy.arange(cells)[:, None] % 2 == 0), 6.0, 0.3)
    return draws.poisson(level * draws.uniform(0.5, 1.5, (cells, 1))).astype(numpy.float32)


def names(cells: int) -> list[str]:
    return [f"cell-{number}" for number in range(cells)]


def host(cells: int | None = 200) -> SingleCells:
    """With cells of its own, no file; None: with none, so that it looks for prepared ones."""
    from dprm.hosts.dcm.data import key_of

    raw, key = counts(cells or 200), torch.tensor([key_of(name) for name in names(cells or 200)])
    bins = Bins.fitted(raw, [f"g{gene}" for gene in range(GENES)])
    config = CellConfig(bins.genes, bins.cuts, width=16, depth=1)
    model = Denoiser(CellModel(config))  # type: ignore[arg-type]
    own = None if cells is None else lambda: (bins.of(raw), key, bins)
    return SingleCells(model, bins, config.mask_id, cells=own)
