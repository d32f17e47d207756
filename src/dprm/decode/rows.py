"""What belongs to the rows of a batch besides their canvas: image prefixes, classes, backbones.

It is a tensor, a sequence, or a mapping from names to these; the first dimension is always the row. The decoding loop
never looks inside: it takes rows of it wherever rows of the batch are taken, and hands it to the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Rows = Tensor | Sequence[Any] | Mapping[str, Any]


def rows_at(rows: Rows | None, index: Tensor | slice) -> Rows | None:
    """The rows at an index [n] or slice; an index may repeat."""
    if rows is None:
        return None
    if isinstance(rows, Mapping):
        return {name: rows_at(column, index) for name, column in rows.items()}
    if isinstance(rows, Tensor):
        return rows[index if isinstance(index, slice) else index.to(rows.device)]
    return rows[index] if isinstance(index, slice) else [rows[row] for row in index.tolist()]


def rows_joined(parts: Sequence[Rows | None]) -> Rows | None:
    """Several batches' rows, one after the other."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Mapping):
        return {name: rows_joined([part[name] for part in parts]) for name in first}  # type: ignore[index, call-overload]
    if isinstance(first, Tensor):
        return torch.cat(list(parts))  # type: ignore[arg-type]
    return [row for part in parts for row in part]  # type: ignore[union-attr]


def rows_count(rows: Rows) -> int:
    """How many rows there are."""
    return rows_count(next(iter(rows.values()))) if isinstance(rows, Mapping) else len(rows)
