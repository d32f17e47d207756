"""Checkpoints and weights: tensors with JSON-able facts, in one file that is replaced as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.order.files import read_tensors, write_tensors

_KIND = "dprm.checkpoint"


def save(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and facts."""
    write_tensors(path, tensors, {"kind": _KIND, "facts": facts})


def load(path: Path, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a file written by `save`."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    tensors, header = read_tensors(path, _KIND)
    return {name: tensor.to(device) for name, tensor in tensors.items()}, header["facts"]


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors as entries of a larger file."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The entries of a larger file that `with_prefix` made."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
