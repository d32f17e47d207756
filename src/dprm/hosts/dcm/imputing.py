"""Imputation of a person's own cells: what is hidden, and the file that comes back.

The file has the genes of the model. Its layers say the bin of every gene, measured or imputed, the step at which it was
decided (0: measured), and how sure the model was of it.

Shapes: N cells, G genes of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from dprm.host.host import Problems
from dprm.host.rollout import Rollout
from dprm.hosts.dcm.counts import Counts, counts_of, opened
from dprm.hosts.dcm.data import key_of
from dprm.hosts.dcm.host import SingleCells

BINS, STEP, CONFIDENCE = "dcm_bins", "dcm_step", "dcm_confidence"


@dataclass(frozen=True)
class Asked:
    """Cells to impute.

    Attributes:
        problems: hidden genes are masked. counts: what was read. measured: [G] bool, genes that the file has.
        obs: what the file says of the cells, in their order. lines: what was left out, and why.
    """

    problems: Problems
    counts: Counts
    measured: Tensor
    obs: Any
    lines: list[str]


def asked(
    host: SingleCells, path: Path, layer: str | None = None, mask: str | None = None, zeros: bool = False
) -> Asked:
    """The cells of an `.h5ad` file as problems.

    Hidden are the genes of the model that the file has not; with `mask` also the entries where that layer is not 0,
    with `zeros` also those without a count.

    Raises:
        ValueError: no counts, none of the model's genes, a missing layer, or nothing that is hidden.
    """
    data = opened(path)
    counts = counts_of(data, str(path), layer)
    column = {gene: index for index, gene in enumerate(counts.genes)}
    genes = host.bins.genes
    measured = torch.tensor([gene in column for gene in genes])
    if not bool(measured.any()):
        raise ValueError(
            f"{path} has none of the {len(genes)} genes of the model ({', '.join(genes[:3])} …), but "
            f"{', '.join(counts.genes[:3])} …: gene names must be of the same kind"
        )
    shared = [column[gene] for gene in genes if gene in column]
    known = counts.dense(shared)
    bins = torch.zeros(len(counts.cells), len(genes), dtype=torch.int64)
    bins[:, measured] = host.bins.of(known).long()
    hidden = (~measured).expand(len(bins), -1).clone()
    if zeros:
        hidden |= bins == 0
    if mask is not None:
        hidden[:, measured] |= _masked(data, counts, shared, mask, str(path))
    if not bool(hidden.any()):
        remedy = "give --mask LAYER, or --zeros to treat zeros as missing"
        raise ValueError(f"{path} has all genes of the model, so nothing is hidden: {remedy}")
    lines = list(counts.lines)
    if len(shared) < len(genes):
        lines.append(f"{len(genes) - len(shared)} of {len(genes)} genes of the model are not in the file: imputed")
    lines.append(f"{len(counts.genes) - len(shared):,} of {len(counts.genes):,} genes of the file are not in the model")
    canvas = bins.masked_fill(hidden, host.mask_id)
    key = torch.tensor([key_of(cell) for cell in counts.cells])
    problems = Problems(canvas.to(host.device), key.to(host.device), list(bins.to(torch.uint8)))
    return Asked(problems, counts, measured, data.obs.iloc[counts.rows].copy(), lines)


def _masked(data: Any, counts: Counts, columns: list[int], layer: str, name: str) -> Tensor:
    """[N,g] bool, where a layer is not 0, at the cells and genes that were read."""
    if layer not in data.layers:
        raise ValueError(f"{name} has no layer {layer!r}: it has {', '.join(data.layers.keys()) or 'none'}")
    part = data.layers[layer][counts.rows][:, [counts.columns[column] for column in columns]]
    return torch.from_numpy(numpy.asarray(part.todense() if hasattr(part, "todense") else part) != 0)


def written(host: SingleCells, cells: Asked, rollout: Rollout, out: Path, notes: dict[str, str]) -> list[str]:
    """Write the imputed cells; returns a summary, a line each."""
    import anndata
    import pandas

    tokens, step = rollout.tokens.numpy(), rollout.step_map.numpy()
    made = anndata.AnnData(
        X=tokens.astype(numpy.float32),
        obs=cells.obs,
        var=pandas.DataFrame({"measured": cells.measured.numpy()}, index=list(host.bins.genes)),
    )
    made.layers[BINS] = tokens.astype(numpy.int16)
    made.layers[STEP] = step.astype(numpy.int16)
    made.layers[CONFIDENCE] = torch.nan_to_num(rollout.confidence, nan=1.0).numpy().astype(numpy.float32)
    made.uns["dcm"] = {**notes, "cuts": numpy.asarray((1.0, *host.bins.cuts)), "weights": host.weights}
    part = out.with_name(f".{out.name}.part")
    made.write_h5ad(part)
    part.replace(out)
    imputed = step > 0
    share = float((tokens[imputed] > 0).mean())
    return [
        *cells.lines,
        f"{len(tokens):,} cells, {imputed.sum():,} entries imputed, {share:.0%} of them above 0",
        f"layers {BINS} (0 … {host.bins.top}), {STEP} (0: measured) and {CONFIDENCE}",
    ]
