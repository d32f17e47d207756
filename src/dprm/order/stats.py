"""Evidence: exact, additive statistics of exponentiated rewards, cell by cell.

For every cell three sums are kept over its events j, with Y_j = exp(β(R_j − R_max)) ∈ (0, 1]:

    N = Σ 1        S = Σ Y_j        Q = Σ Y_j²

and beside them T, the number of trajectories that these events come from: reveals of one trajectory share its reward
and are not independent, so T and not N says how far a mean can be off.

Each event is rounded once to a fixed point of 2⁻⁶⁰ and cut into two 30-bit halves; from then on there are only integer
additions. So the same events give the same Stats bit for bit, in any order, from any number of workers, after any
resume, and a cell holds 2³³ events before an integer would overflow.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dprm.order.cells import Cells
from dprm.order.checks import check_bounds, check_integer, check_number, check_shape
from dprm.order.files import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_HALF = 30
_UNIT = 1 << _HALF
_FULL = 1 << 2 * _HALF
_CAPACITY = 1 << 62


class Stats:
    """Sums of events in cells; a commutative monoid under `+`.

    Args:
        cells: the grid, or a plain number of cells.
        beta: inverse temperature β > 0 of the tilt.
        reward_range: the declared (R_min, R_max); a reward outside is an error.
        centred: rewards were centred inside their prompt before they came here (baseline `prompt`).
    """

    def __init__(
        self,
        cells: Cells | int,
        beta: float = 1.0,
        reward_range: tuple[float, float] = (0.0, 1.0),
        centred: bool = False,
    ):
        self.cells = Cells(1, cells, 1) if isinstance(cells, int) else cells
        self.beta = check_number("beta", beta, 0, open_low=True)
        self.reward_range = checked_range(reward_range)
        self.centred = bool(centred)
        # [cells, (N, S, Q, T), (units of 2⁻³⁰, units of 2⁻⁶⁰)]
        self.moments = torch.zeros(self.cells.count, 4, 2, dtype=torch.int64)

    @property
    def schema(self) -> dict[str, Any]:
        """What must agree before two Stats may be added."""
        return {
            "cells": [*self.cells.shape, self.cells.tables],
            "beta": self.beta,
            "reward_range": list(self.reward_range),
            "centred": self.centred,
        }

    @property
    def count(self) -> Tensor:
        """[cells] int64 number of events (after forgetting: the whole part of their weight)."""
        return self.moments[:, 0, 0] >> _HALF

    @property
    def sums(self) -> Tensor:
        """[3,cells] float64: N, S and Q."""
        high, low = self.moments[:, :3].double().unbind(-1)
        return (high / _UNIT + low / _FULL).T.contiguous()

    @property
    def trajectories(self) -> Tensor:
        """[cells] float64: T."""
        return self.moments[:, 3, 0].double() / _UNIT

    def add(
        self, cell: Tensor, reward: Tensor, count: Tensor | int | None = None, trajectory: Tensor | None = None
    ) -> None:
        """Add events.

        Args:
            cell: [n] int. reward: [n]. count: [n] or int, how often each happened; default once.
            trajectory: [n] int, where each event comes from, for events of this call; None: each from its own.

        Raises:
            ValueError: a cell or reward out of range, NaN or infinite, naming the row. Nothing is changed then.
        """
        cell, reward = torch.as_tensor(cell).cpu(), torch.as_tensor(reward).cpu()
        if cell.dim() != 1 or cell.shape != reward.shape:
            shapes = f"{tuple(cell.shape)} and {tuple(reward.shape)}"
            raise ValueError(f"cell and reward have shapes {shapes}: expected two vectors of one length")
        check_integer("cell", cell)
        check_bounds("cell", cell, 0, self.cells.count - 1, f"there are {self.cells.count} cells")
        terms = self._terms(checked_reward(reward, self.reward_range))
        if trajectory is not None:
            check_shape("trajectory", trajectory, tuple(cell.shape), "one an event")
            terms[:, 3] *= _first(torch.stack([trajectory.cpu().long(), cell.long()])).unsqueeze(1)
        if count is not None:
            count = torch.as_tensor(count)
            check_integer("count", count)
            check_bounds("count", count.reshape(-1), 0, 2**33, "expected 0 to 2^33")
            terms = terms * count.cpu().long().reshape(-1, 1, 1)
        self._keep(self.moments.index_add(0, cell.long(), terms))

    def _terms(self, reward: Tensor) -> Tensor:
        """[n,4,2] int64: one event each, in fixed point."""
        exponent = self.beta * (reward - self.reward_range[1])
        none = torch.zeros_like(exponent)
        powers = torch.stack([none, exponent, 2 * exponent, none], dim=-1)
        fixed = (powers.exp() * _FULL).round().long()
        return torch.stack([fixed >> _HALF, fixed & (_UNIT - 1)], dim=-1)

    def restore(self, moments: Tensor) -> Stats:
        """Take the place of all evidence by what a file has; one without T counts every event as a trajectory."""
        if moments.shape[1:] == (3, 2):
            moments = torch.cat([moments, moments[:, :1]], dim=1)
        if moments.shape != self.moments.shape:
            raise ValueError(f"moments has shape {tuple(moments.shape)}: expected {tuple(self.moments.shape)}")
        self._keep(moments)
        return self

    def _keep(self, moments: Tensor) -> None:
        if int(moments.max()) >= _CAPACITY or int(moments.min()) < 0:
            full = int(moments.view(self.cells.count, -1).amax(1).argmax())
            raise OverflowError(f"cell {full} is full: a cell holds about 2^33 events; start a new Stats or forget")
        self.moments = moments

    def __add__(self, other: Stats) -> Stats:
        self.check_same(other)
        total = copy.copy(self)
        total._keep(self.moments + other.moments)
        return total

    def without(self, part: Stats) -> Stats:
        """What is left when a part, which was added before, is taken out again."""
        self.check_same(part)
        rest = copy.copy(self)
        rest._keep(self.moments - part.moments)
        return rest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stats):
            return NotImplemented
        return self.schema == other.schema and torch.equal(self.moments, other.moments)

    __hash__ = None  # type: ignore[assignment]

    def check_same(self, other: Stats) -> None:
        """Raise unless both count the same thing in the same cells."""
        for field, mine in self.schema.items():
            theirs = other.schema[field]
            if mine != theirs:
                raise ValueError(f"these Stats cannot be added: {field} is {mine} here and {theirs} there")

    def empty(self) -> Stats:
        """A Stats of the same schema without events."""
        return Stats(self.cells, self.beta, self.reward_range, self.centred)

    def repeated(self, tables: int) -> Stats:
        """The same evidence in each of so many tables."""
        whole = Stats(replace(self.cells, tables=tables), self.beta, self.reward_range, self.centred)
        whole._keep(self.moments.repeat(tables, 1, 1))
        return whole

    def forget(self, rate: float) -> Stats:
        """Exponential forgetting for drifting hosts: every past event weighs 1 − rate of what it did."""
        keep = 1.0 - check_number("rate", rate, 0, 1)
        high, low = (self.moments.double() * keep).unbind(-1)
        whole = high.floor()
        faded = copy.copy(self)
        faded._keep(torch.stack([whole.long(), ((high - whole) * _UNIT + low).long()], dim=-1))
        return faded

    def all_reduce(self, group: ProcessGroup | None = None) -> Stats:
        """Sum over the processes of `group`, in place; every process ends with the same bits."""
        import torch.distributed as dist

        device = torch.device("cuda") if dist.get_backend(group) == "nccl" else torch.device("cpu")
        word = int.from_bytes(hashlib.sha256(json.dumps(self.schema).encode()).digest()[:7], "big")
        # Largest and smallest word in one call: they agree only if all do, and then the sums have one shape.
        seen = torch.tensor([word, -word], device=device)
        dist.all_reduce(seen, op=dist.ReduceOp.MAX, group=group)
        if int(seen[0]) != -int(seen[1]):
            raise ValueError(f"these Stats cannot be reduced: the processes disagree on the schema; here {self.schema}")
        moments = self.moments.to(device)
        dist.all_reduce(moments, op=dist.ReduceOp.SUM, group=group)
        self._keep(moments.cpu())
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all."""
        write_tensors(path, {"moments": self.moments}, {"kind": "dprm.stats", **self.schema})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Stats:
        """Read what `save` wrote."""
        tensors, header = read_tensors(path, "dprm.stats")
        try:
            moments, cells = tensors["moments"], Cells(*header["cells"])
            if moments.dtype != torch.int64 or len(moments) != cells.count:
                # Before memory is taken for as many cells as the header names.
                raise ValueError(
                    f"moments is {moments.dtype} {tuple(moments.shape)}: expected int64 [{cells.count},4,2]"
                )
            stats = cls(cells, header["beta"], tuple(header["reward_range"]), header["centred"])
            return stats.restore(moments)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise ValueError(f"{path}: {error}") from error


def _first(pairs: Tensor) -> Tensor:
    """[n] int64: 1 where a column of pairs [2,n] comes for the first time, else 0."""
    _, member = torch.unique(pairs, dim=1, return_inverse=True)
    index = torch.arange(pairs.shape[1])
    earliest = torch.full_like(index, len(index)).scatter_reduce_(0, member, index, "amin")
    return (earliest[member] == index).long()


def checked_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """Return the declared (low, high) as floats, or raise."""
    try:
        low, high = (float(bound) for bound in reward_range)
    except (TypeError, ValueError):
        raise TypeError(f"reward_range is {reward_range!r}: expected (lowest, highest) reward") from None
    check_number("reward_range[0]", low, -1e18, 1e18)
    check_number("reward_range[1]", high, low, 1e18, open_low=True)
    return low, high


def checked_reward(reward: Tensor, reward_range: tuple[float, float]) -> Tensor:
    """Return the rewards as a fresh float64 vector, or raise naming the first row outside the declared range."""
    low, high = reward_range
    exact = reward.to(torch.float64, copy=True).contiguous()
    check_bounds("reward", exact, low, high, f"outside the declared reward_range [{low:g}, {high:g}]")
    return exact


def centre(reward: Tensor, group: Tensor, reward_range: tuple[float, float]) -> Tensor:
    """R − mean of its group; the mean is taken in fixed point, so that the order of rows cannot matter."""
    _, member, size = torch.unique(group, return_inverse=True, return_counts=True)
    scale = 2.0 ** (40 - math.frexp(max(abs(bound) for bound in reward_range))[1])
    total = torch.zeros(len(size), dtype=torch.int64).index_add_(0, member, (reward * scale).round().long())
    mean: Tensor = total.double() / size / scale
    return reward - mean[member]
