"""Problems generated in rounds until there are enough, and training sequences from a stock of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.data.underway import tell
from dprm.order.files import read_tensors, write_tensors

Fields = tuple[Tensor, ...]
_KIND = "dprm.prepared"


def collected(draw: Callable[[int], Fields], size: int, what: str, key: Callable[[Fields], Tensor] | None) -> Fields:
    """The first `size` rows of as many rounds as it takes.

    Args:
        draw: the rows that round 0, 1, … gives: several arrays of one length.
        what: whose rows they are, for the message. key: [N] identities, to take no row twice; None: rows may repeat.
    """
    parts: list[Fields] = []
    total = 0
    for turn in count():
        parts.append(draw(turn))
        before = total
        if key is not None:
            parts = [_without_repeats(_joined(parts), key)]
        total = sum(len(part[0]) for part in parts)
        tell(f"problems, {what}", min(total, size), size)
        if total >= size:
            break
        if key is not None and total == before:
            raise ValueError(f"count is {size}: {what} has hardly more than {total} problems")
    return tuple(field[:size] for field in _joined(parts))


def _joined(parts: list[Fields]) -> Fields:
    return tuple(torch.cat(fields) for fields in zip(*parts, strict=True))


def _without_repeats(rows: Fields, key: Callable[[Fields], Tensor]) -> Fields:
    """The first row of every key, in the order of drawing."""
    unique, member = torch.unique(key(rows), return_inverse=True)
    order = torch.arange(len(member), device=member.device)
    first = torch.full_like(unique, len(member)).scatter_reduce_(0, member, order, "amin").sort().values
    return tuple(field[first] for field in rows)


def kept(path: Path, make: Callable[[], Tensor], **facts: Any) -> Tensor:
    """A prepared tensor, made once and then read from its file; made anew where the file holds that of other facts.

    Args:
        facts: all that decides what is made; code as the modules that make it.
    """
    said = {name: _source(value) if isinstance(value, ModuleType) else value for name, value in facts.items()}
    header = {"kind": _KIND, "facts": json.loads(json.dumps(said))}
    if path.is_file():
        tensors, found = read_tensors(path, _KIND)
        if found["facts"] == header["facts"]:
            return tensors["prepared"]
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tensors(path, {"prepared": made}, header)
    return made


def _source(module: ModuleType) -> str:
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:16]


class Stock:
    """An endless supply from a finite stock (see `masks.Data`).

    Args:
        tokens: [N,L] uint8, the clean sequences. answer: [L] bool, the positions to be predicted.
        seed: of the order in which they come.
    """

    def __init__(self, tokens: Tensor, answer: Tensor, mask_id: int, seed: int, device: torch.device | str):
        self.tokens, self.mask_id, self.seed, self.device = tokens, mask_id, seed, device
        self._answer = answer.to(device)

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        index = Draws("stock", self.seed, step, device=self.device).below(len(self.tokens), rows)
        return self.tokens[index].long(), self._answer.expand(rows, -1)
