"""Cells as training sequences, and the cells that are held out.

The name of a cell says which split it belongs to. Genes and bins are fitted on the training cells only. Shapes: N
cells, G genes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy
import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.data.packages import DataSets, Source, cache
from dprm.data.splits import SPLITS, in_split
from dprm.hosts.dcm.bins import Bins
from dprm.hosts.dcm.counts import read_counts
from dprm.order.files import read_tensors, write_tensors

KIND = "dprm.cells"


def prepare(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """The binned cells of an `.h5ad` file of raw counts, and what was left out and why (see `DataSets`)."""
    counts = read_counts(path)
    key = torch.tensor([key_of(cell) for cell in counts.cells])
    train = in_split(key, "train").numpy()
    if not train.any():
        raise ValueError(f"{path} has {len(key)} cells, none of which falls to training: expected a few dozen at least")
    bins = Bins.fitted(_part(counts.matrix, train), counts.genes)
    column = {gene: index for index, gene in enumerate(counts.genes)}
    binned = bins.of(counts.dense([column[gene] for gene in bins.genes]))
    sizes = ", ".join(f"{int(in_split(key, split).sum()):,} {split}" for split in SPLITS)
    zeros = float((binned == 0).double().mean())
    lines = [
        f"{len(key):,} cells ({sizes}); {len(bins.genes):,} of {len(counts.genes):,} genes, {zeros:.0%} zeros",
        f"{bins.top} bins of positive counts, from {', '.join(f'{cut:g}' for cut in (1.0, *bins.cuts))} on",
        *counts.lines,
    ]
    prepared_path = folder / "cells.safetensors"
    header = {"kind": KIND, "from": path.name, "genes": bins.genes, "cuts": bins.cuts, "lines": lines}
    write_tensors(prepared_path, {"bins": binned, "key": key}, header)
    return prepared_path, lines


def _part(matrix: object, rows: numpy.ndarray) -> numpy.ndarray:
    part = matrix[rows]  # type: ignore[index]
    return numpy.asarray(part.todense() if hasattr(part, "todense") else part, dtype=numpy.float32)


def key_of(cell: str) -> int:
    """The identity of a cell, from its name."""
    return int.from_bytes(hashlib.sha256(cell.encode()).digest()[:8]) >> 2


MARROW = Source(
    package="palantir",
    archive="palantir-1.3.6.tar.gz",
    sha256="62e67725d4762b7b60db3e00cca982eab76b16a7c87ab6b785194202b76079fc",
    inside="data/marrow_sample_scseq_counts.h5ad",
    licence="GPL-2.0 (the package), data of Setty et al. 2019",
    about="4,142 human CD34+ bone marrow cells, raw counts of 16,106 genes",
)
DENTATE = Source(
    package="scvelo",
    archive="scvelo-0.3.4.tar.gz",
    sha256="9480c111105a33638152ea34d61e9e92aa1abc251bc31158601a8678ee4886b9",
    inside="tests/_data/dentategyrus_100obs.h5ad",
    licence="BSD-3-Clause",
    about="100 cells of the mouse dentate gyrus set of the paper, raw counts of 13,913 genes",
)
DATA = DataSets({"marrow": MARROW, "dentate": DENTATE}, prepare, needs=("anndata",))


def prepared(name: str = "marrow") -> tuple[Tensor, Tensor, Bins]:
    """bins [N,G] uint8, key [N] int64, and how they were made.

    Raises:
        ValueError: they are not there; the message says how to get them.
    """
    path = cache() / "dcm" / name / "cells.safetensors"
    if not path.is_file():
        raise ValueError(f"there are no cells {path}; get them with: dprm data dcm")
    tensors, header = read_tensors(path, KIND)
    return tensors["bins"], tensors["key"], Bins(tuple(header["genes"]), tuple(header["cuts"]))


def prepared_for(bins: Bins) -> tuple[Tensor, Tensor, Bins]:
    """The prepared cells that have the genes and bins of a model."""
    for path in sorted((cache() / "dcm").glob("*/cells.safetensors")):
        stored = prepared(path.parent.name)
        if stored[2] == bins:
            return stored
    raise ValueError(
        f"there are no cells in {cache() / 'dcm'} with the {len(bins.genes)} genes and the bins of this model; get "
        "them with: dprm data dcm"
    )


class Cells:
    """An endless supply of the training cells (see `masks.Data`)."""

    def __init__(self, bins: Tensor, key: Tensor, mask_id: int, seed: int, device: torch.device | str):
        self.bins = bins[in_split(key, "train")].to(device)
        self.mask_id, self.seed, self.device = mask_id, seed, device

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        row = Draws("cells", self.seed, step, device=self.device).below(len(self.bins), rows)
        clean = self.bins[row].long()
        return clean, torch.ones_like(clean, dtype=torch.bool)
