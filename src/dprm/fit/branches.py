"""Branches: states of decodings, what was chosen there, what else could have been, and what came of either.

Shapes: S states, K alternatives a state, L positions, J metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from dprm.host.host import Host
from dprm.order.cells import Cells
from dprm.order.head import Sight
from dprm.order.noise import mix, mix_rows

_SIGHT = tuple(f.name for f in fields(Sight))


@dataclass
class Branches:
    """Paired comparisons at shared states.

    Attributes:
        sight: what the decision showed.
        group: [S] int64, the group of the problem; folds keep it together.
        native: [S] int64, the position that the order chose and that an alternative took the place of.
        alternative: [S,K] int64. tried: [S,K] bool, whether there was such an alternative.
        native_scores: [S,J] float32, of the answer that the order gave. scores: [S,K,J], after the alternative.
    """

    sight: Sight
    group: Tensor
    native: Tensor
    alternative: Tensor
    tried: Tensor
    native_scores: Tensor
    scores: Tensor

    def __len__(self) -> int:
        return len(self.group)

    @property
    def count(self) -> int:
        """How many alternatives were tried in all."""
        return int(self.tried.sum())

    def gain(self, host: Host) -> Tensor:
        """[S,K] float32, terminal reward after the alternative minus that of the order's own answer."""
        states, alternatives, metrics = self.scores.shape
        reward = host.reward(self.scores.reshape(-1, metrics)).view(states, alternatives)
        return (reward - host.reward(self.native_scores).unsqueeze(1)).float()

    def cells(self, cells: Cells) -> tuple[Tensor, Tensor]:
        """[S,K] int64 cells of the alternatives and [S,1] of the native choices."""
        sight = self.sight
        aux = sight.aux.int() if cells.aux > 1 else None
        cell = cells.index(cells.first_of_phase(sight.progress), sight.confidence, aux).long()
        return cell.gather(1, self.alternative), cell.gather(1, self.native.unsqueeze(1))

    def counts(self, cells: Cells) -> Tensor:
        """[cells] int64, how often a position of each cell was compared."""
        alternative, native = self.cells(cells)
        compared = torch.cat([alternative[self.tried], native.squeeze(1)])
        return torch.bincount(compared, minlength=cells.count)

    def __getitem__(self, rows: Tensor | slice) -> Branches:
        """Some of the states."""
        return self.from_tensors({name: column[rows] for name, column in self.tensors().items()})

    def to(self, device: torch.device | str) -> Branches:
        """The same, elsewhere."""
        return self.from_tensors({name: column.to(device) for name, column in self.tensors().items()})

    @classmethod
    def joined(cls, parts: Sequence[Branches]) -> Branches:
        """Several collections as one."""
        columns = [part.tensors() for part in parts]
        return cls.from_tensors({name: torch.cat([column[name] for column in columns]) for name in columns[0]})

    def shuffled(self, seed: int) -> Branches:
        """The answers that belong to a state, its own among them, permuted: the same numbers, without their meaning.

        Were the order's own answer left in its place, alternatives would stay better or worse than it on average, and
        a head that is fitted under its own policy could read from that which choices were its own.
        """
        tried = torch.cat([torch.ones_like(self.tried[:, :1]), self.tried], dim=1)
        lot = mix_rows(torch.arange(tried.numel()), mix(seed, 3)).view(tried.shape) & (2**62 - 1)
        # What was not tried stays where it is, behind what was.
        home = (~tried).int().argsort(dim=1, stable=True)
        ranks = torch.where(tried, lot, 2**62).argsort(dim=1, stable=True)
        answers = torch.cat([self.native_scores.unsqueeze(1), self.scores], dim=1)
        wide = (slice(None), slice(None), None)
        moved = answers.gather(1, ranks[wide].expand_as(answers))
        answers = answers.scatter(1, home[wide].expand_as(answers), moved)
        return replace(self, native_scores=answers[:, 0], scores=answers[:, 1:])

    def folds(self, count: int) -> Iterator[tuple[Branches, Branches]]:
        """Split by group, not by state: `count` times what is learned from, and the part on which it is judged."""
        number = mix_rows(self.group, 7) % count
        for fold in range(count):
            yield self[(number != fold).nonzero().flatten()], self[(number == fold).nonzero().flatten()]

    def tensors(self) -> dict[str, Tensor]:
        """Every column by name, as kept in a file."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sight"}
        return {**own, **{f"sight.{name}": getattr(self.sight, name) for name in _SIGHT}}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> Branches:
        """What `tensors` gave."""
        sight = Sight(**{name: tensors[f"sight.{name}"] for name in _SIGHT})
        return cls(sight=sight, **{name: column for name, column in tensors.items() if not name.startswith("sight.")})
