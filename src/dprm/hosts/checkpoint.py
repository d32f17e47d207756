"""Checkpoints: one safetensors file whose header holds the JSON, replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor


def save(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and JSON-able facts; a reader, or a kill in the middle, sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Copies, because safetensors refuses tensors that share memory, as tied weights do.
        save_file(
            {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()},
            beside,
            metadata={"facts": json.dumps(facts)},
        )
        beside.chmod(0o644)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: Path, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a file written by `save`."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            facts = json.loads((file.metadata() or {})["facts"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged or was not written as a checkpoint ({error}): delete it") from None


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors as entries of a larger file."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def part(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The entries of a larger file that `with_prefix` made."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
