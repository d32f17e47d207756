"""Traces: the choices of a served model, written down where they are made.

A folder of shards, each a safetensors file that is never written again. One entry is one revealed position:

    request     [n] int32, index into the names of the shard
    cell        [n] int32, captured at the choice
    position    [n] int32, place in the text
    left        [n] int32, masked positions of the block before the step
    confidence  [n] float32
    changed     [n] uint8, whether the policy changed the step

Where contrasts are taken, of every step that was drawn:

    contrast    [s,F] float16, the features of what was revealed less those of a second, independent draw
    contrasted  [s] int32, the request, as above

The header has the grid of cells, the signal, the digest of the policy that acted, the mask and the vocabulary of the
model, and the names of the requests.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from dprm.order.checks import check_count
from dprm.order.files import read_tensors, write_tensors
from dprm.order.order import Order

_KIND = "dprm.traces"
_SCHEMA = 1
SUFFIX = ".traces"


@dataclass(frozen=True)
class Reveals:
    """One step of B requests, L positions of a block each.

    Attributes:
        names: of the requests. first: [B] int64, the place of the block in the text.
        candidates, mask: [B,L] bool, what there was to choose from, and what was revealed.
        cell: [B,L] int. confidence: [B,L] float32.
        changed: [B] bool, whether the policy changed the step.
        contrast: [B,F] float32, the features of what was revealed less those of another draw.
    """

    names: tuple[str, ...]
    first: Tensor
    candidates: Tensor
    mask: Tensor
    cell: Tensor
    confidence: Tensor
    changed: Tensor
    contrast: Tensor | None = None

    @property
    def chosen(self) -> Tensor:
        """[B,L] the cell of what was revealed, elsewhere −1."""
        return torch.where(self.mask, self.cell, -1)


class Recorder(Protocol):
    """Takes down what is revealed."""

    def expect(self, order: Order, digest: str, model: dict[str, int | None]) -> None:
        """What all that follows is chosen by, and for which model: its mask_id and vocabulary."""

    def record(self, reveals: Reveals) -> None:
        """Take down one step; no value is looked at."""


class Traces:
    """Where an engine writes its choices.

    Nothing waits: choices stay where they were made until `every` steps are together, and then another thread brings
    them over and writes them. What is left is written by `flush`, which also runs when the process ends.

    Args:
        folder: made if it is not there; many processes may write into one.
        engine: for people. every: steps a shard.
    """

    def __init__(self, folder: Path | str, engine: str = "", every: int = 512):
        # What is left is written when the process ends, wherever it then is.
        self.folder = Path(folder).absolute()
        self.engine = engine
        self.every = check_count("every", every, 1)
        self._header: dict[str, Any] = {}
        self._steps: list[tuple[Any, ...]] = []
        self._writer: threading.Thread | None = None
        self._error: Exception | None = None
        atexit.register(self.flush)

    def expect(self, order: Order, digest: str, model: dict[str, int | None]) -> None:
        """See `Recorder`; ValueError where another policy or model writes here already."""
        header = {"cells": [*order.cells.shape], "signal": order.signal.spec(), "policy": digest, "model": model}
        if self._header and self._header != header:
            remedy = "make a Traces for each Selector; they may have the same folder"
            raise ValueError(f"these traces are those of policy {self._header['policy'][:16]} already: {remedy}")
        self._header = header

    def record(self, reveals: Reveals) -> None:
        """Take down one step; no value is looked at."""
        self._raise()
        # The engine may write into its tensors again: only what was made here is kept.
        left = reveals.candidates.sum(1)
        columns = reveals.first, left, reveals.chosen, reveals.confidence, reveals.changed, reveals.contrast
        self._steps.append((reveals.names, *columns))
        if len(self._steps) >= self.every:
            self._hand_over()

    def flush(self) -> None:
        """Write all that was recorded, and wait until it is there."""
        self._hand_over()
        if self._writer is not None:
            self._writer.join()
        self._raise()

    def _hand_over(self) -> None:
        steps, self._steps = self._steps, []
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        if steps:
            self._writer = threading.Thread(target=self._write, args=(steps, self._header))
            self._writer.start()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _write(self, steps: list[tuple[Any, ...]], header: dict[str, Any]) -> None:
        try:
            index: dict[str, int] = {}
            parts = [_columns(index, *step) for step in steps]
            columns = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
            if not len(columns["cell"]):
                return
            facts = {"kind": _KIND, "schema": _SCHEMA, "engine": self.engine, "requests": list(index), **header}
            write_tensors(self.folder / f"{_digest(columns, list(index))}{SUFFIX}", columns, facts)
        except Exception as error:
            self._error = error


def _columns(
    index: dict[str, int],
    names: tuple[str, ...],
    first: Tensor,
    left: Tensor,
    chosen: Tensor,
    confidence: Tensor,
    changed: Tensor,
    contrast: Tensor | None,
) -> dict[str, Tensor]:
    """The entries of one step; names that are new get the next index."""
    chosen, first, left = chosen.cpu(), first.cpu(), left.cpu()
    row, place = (chosen >= 0).nonzero().unbind(1)
    own = torch.tensor([index.setdefault(name, len(index)) for name in names])
    columns = {} if contrast is None else {"contrast": contrast.cpu().half(), "contrasted": own.int()}
    return columns | {
        "request": own[row].int(),
        "cell": chosen[row, place].int(),
        "position": (first[row] + place).int(),
        "left": left[row].int(),
        "confidence": confidence.cpu()[row, place],
        "changed": changed.cpu()[row].byte(),
    }


def _digest(columns: dict[str, Tensor], names: list[str]) -> str:
    digest = hashlib.sha256(json.dumps(names).encode())
    for name in sorted(columns):
        digest.update(columns[name].numpy().tobytes())
    return digest.hexdigest()[:24]


def read_shard(path: Path) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    """Digest of the content, columns and header; ValueError where it is damaged, or something else."""
    columns, header = read_tensors(path, _KIND)
    if header.get("schema") != _SCHEMA:
        raise ValueError(f"{path} has schema {header.get('schema')!r}; this version of dprm reads {_SCHEMA}")
    return _digest(columns, header["requests"]), columns, header
