"""Branches: states of decodings, what was chosen there, what else could have been, and what the difference was worth.

Shapes: S states, K alternatives a state, L positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from dprm.fit.cost import Cost
from dprm.order.files import read_tensors, write_tensors
from dprm.order.head import Sight
from dprm.order.noise import mix_rows

_KIND = "dprm.branches"
_PARTS = ("group", "native", "alternative", "kept", "gain")


@dataclass
class Branches:
    """Paired comparisons at shared states.

    Attributes:
        sight: what the decision showed.
        group: [S] int64, key of the problem.
        native: [S] int64, the position that the order chose and that an alternative took the place of.
        alternative: [S,K] int64. kept: [S,K] bool, whether there was such an alternative.
        gain: [S,K] float32, terminal reward after the alternative minus that after the native choice.
        cost: what it took.
    """

    sight: Sight
    group: Tensor
    native: Tensor
    alternative: Tensor
    kept: Tensor
    gain: Tensor
    cost: Cost

    def __len__(self) -> int:
        return len(self.group)

    def __getitem__(self, rows: Tensor | slice) -> Branches:
        """Some of the states; the cost stays that of all."""
        return self._with(self.sight[rows], {name: getattr(self, name)[rows] for name in _PARTS}, self.cost)

    def to(self, device: torch.device | str) -> Branches:
        """The same, elsewhere."""
        return self._with(self.sight.to(device), {name: getattr(self, name).to(device) for name in _PARTS}, self.cost)

    @classmethod
    def _with(cls, sight: Sight, parts: dict[str, Tensor], cost: Cost) -> Branches:
        return cls(sight=sight, cost=cost, **parts)

    @classmethod
    def joined(cls, parts: Sequence[Branches]) -> Branches:
        """Several collections as one."""
        sight = Sight.joined([part.sight for part in parts])
        columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in _PARTS}
        return cls._with(sight, columns, sum((part.cost for part in parts), Cost()))

    def folds(self, count: int) -> Iterator[tuple[Branches, Branches]]:
        """Split by problem, not by state: `count` times what is learned from, and the part on which it is judged."""
        number = mix_rows(self.group, 7) % count
        for fold in range(count):
            yield self[(number != fold).nonzero().flatten()], self[(number == fold).nonzero().flatten()]

    def save(self, path: Path, header: dict[str, str]) -> None:
        """One file."""
        seen = {f"sight.{f.name}": getattr(self.sight, f.name) for f in fields(Sight)}
        parts = {name: getattr(self, name) for name in _PARTS}
        write_tensors(path, {**seen, **parts}, {"kind": _KIND, **header, "cost": self.cost.notes()})

    @classmethod
    def load(cls, path: Path) -> tuple[Branches, dict[str, str]]:
        """What `save` wrote, and its header."""
        tensors, header = read_tensors(path, _KIND)
        sight = Sight(**{f.name: tensors[f"sight.{f.name}"] for f in fields(Sight)})
        cost = Cost.of_notes(header.pop("cost"))
        return cls._with(sight, {name: tensors[name] for name in _PARTS}, cost), header
