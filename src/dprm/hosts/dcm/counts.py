"""Raw counts of cells from an `.h5ad` file, checked: what is no count matrix is refused, what is unusable is left out.

Shapes: N cells, G genes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy


@dataclass(frozen=True)
class Counts:
    """Raw counts.

    Attributes:
        matrix: [N,G] sparse or dense, whole numbers ≥ 0.
        cells, genes: names, each once. rows, columns: where they stand in the file.
        lines: what was left out, and why.
    """

    matrix: Any
    cells: list[str]
    genes: list[str]
    rows: list[int]
    columns: list[int]
    lines: list[str]

    def dense(self, columns: list[int] | None = None) -> numpy.ndarray:
        """[N,G] float32 of all genes, or of some columns."""
        part = self.matrix if columns is None else self.matrix[:, columns]
        return numpy.asarray(part.todense() if hasattr(part, "todense") else part, dtype=numpy.float32)


def opened(path: Path) -> Any:
    """The AnnData object of a file; ValueError says what is wrong."""
    try:
        import anndata
    except ImportError:
        raise ValueError('cells need anndata: pip install "dprm[dcm]"') from None
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        return anndata.read_h5ad(path)
    except Exception as error:  # h5py, anndata and numpy each have their own kinds.
        raise ValueError(f"{path} is no readable .h5ad file: {str(error)[:200]}") from None


def read_counts(path: Path, layer: str | None = None) -> Counts:
    """The raw counts of an `.h5ad` file.

    Args:
        layer: where they are; None: in X.

    Raises:
        ValueError: no such layer, no cells or genes, or values that are no counts.
    """
    return counts_of(opened(path), str(path), layer)


def counts_of(data: Any, name: str, layer: str | None = None) -> Counts:
    """The same, of an AnnData object; `name` is for messages."""
    matrix, where = _matrix(data, name, layer)
    if matrix is None or not data.n_obs or not data.n_vars:
        raise ValueError(f"{name} has {data.n_obs} cells and {data.n_vars} genes in {where}: there is nothing to read")
    matrix = matrix.tocsr() if hasattr(matrix, "tocsr") else numpy.asarray(matrix)
    _check_counts(matrix, name, where)
    genes, cells = list(map(str, data.var_names)), list(map(str, data.obs_names))
    columns, rows, lines = _first(genes), _first(cells), []
    if len(columns) < len(genes):
        lines.append(f"left out: {len(genes) - len(columns):,} columns of genes that come twice, {_repeated(genes)}")
    if len(rows) < len(cells):
        lines.append(f"left out: {len(cells) - len(rows):,} rows of cells that come twice, {_repeated(cells)}")
    matrix = matrix[rows][:, columns]
    full = numpy.flatnonzero(numpy.asarray(matrix.sum(1)).ravel() > 0).tolist()
    if len(full) < len(rows):
        lines.append(f"left out: {len(rows) - len(full):,} cells without any count")
    if not full:
        raise ValueError(f"{name} has no cell with any count in {where}")
    rows = [rows[row] for row in full]
    return Counts(matrix[full], [cells[row] for row in rows], [genes[c] for c in columns], rows, columns, lines)


def _matrix(data: Any, name: str, layer: str | None) -> tuple[Any, str]:
    """The matrix that is meant, and where it is."""
    if layer is None:
        return data.X, "X"
    if layer not in data.layers:
        known = ", ".join(data.layers.keys()) or "none"
        raise ValueError(f"{name} has no layer {layer!r}: it has {known}")
    return data.layers[layer], f"layer {layer}"


def _check_counts(matrix: Any, name: str, where: str) -> None:
    """Raise ValueError unless all values are whole numbers ≥ 0."""
    values = matrix.data if hasattr(matrix, "tocsr") else matrix
    values = numpy.asarray(values, dtype=numpy.float64)
    bad = ~numpy.isfinite(values) | (values < 0) | (values != numpy.floor(values))
    if not bad.any():
        return
    value = values[bad].ravel()[0]
    kind = "scaled" if value < 0 else "normalised or log-transformed"
    remedy = "give the raw counts, perhaps with --layer"
    share = bad.mean()
    raise ValueError(f"{name} has {value:.4g} in {where} ({share:.0%} like it): {kind} values, no counts; {remedy}")


def _first(names: list[str]) -> list[int]:
    """Where every name comes first."""
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        first.setdefault(name, row)
    return list(first.values())


def _repeated(names: list[str]) -> str:
    name, times = Counter(names).most_common(1)[0]
    return f"such as {name!r} ({times} times); the first is taken"
