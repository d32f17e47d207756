"""Requests of an engine that says neither their names nor where a block begins: seen from what is masked.

In a batch that stays together, a row that has more masked positions than at the step before is at the start of a block.
In one that is mixed anew at every step nothing can be seen: a block then counts as masked at its start wherever it can
be. Without names, rows are numbered; what is drawn then depends on the row. Shapes: B rows, L positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dprm.contrib.requests import Requests


class Watch:
    """The rows of an engine, from step to step; without names they are numbered behind a prefix."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._names: tuple[str, ...] | None = None
        self._left: Tensor | None = None
        self._last: Requests | None = None
        self._batches = 0

    def name(self, names: Sequence[str]) -> None:
        """What the rows that come next are called: for traces, and so that their batch does not matter to a draw."""
        self._names, self._left = tuple(names), None

    def mixed(self, candidates: Tensor, initial: int | Tensor | None = None, active: Tensor | None = None) -> Requests:
        """The requests of a step in which every row may be another one than before.

        Args:
            candidates: [B,L] bool, what is masked. initial: masked positions at the start; None: L.
            active: [B] which of the named rows these are; looked at only where some of them are not.
        """
        left = candidates.sum(1)
        size = torch.zeros_like(left) + (candidates.shape[1] if initial is None else initial)
        names = self._names or tuple(f"{self._prefix}{row}" for row in range(len(left)))
        if self._names is not None and active is not None and len(active) != len(self._names):
            names = tuple(self._names[row] for row in active.tolist())
        if len(names) != len(left):
            raise ValueError(f"names has {len(names)} requests: expected {len(left)}, one a row of the batch")
        return Requests(names, torch.zeros_like(left), size)

    def requests(self, candidates: Tensor) -> Requests:
        """The requests of this step, candidates [B,L] bool being what is masked. Nothing waits for an accelerator."""
        left = candidates.sum(1)
        if self._last is None or self._left is None or len(left) != len(self._left):
            names = self._names
            if names is None:
                names = tuple(f"{self._prefix}{row}" for row in range(len(left)))
                self._batches += 1
            if len(names) != len(left):
                raise ValueError(f"names has {len(names)} requests: expected {len(left)}, one a row of the batch")
            turn = torch.full_like(left, 0 if self._names is not None else self._batches << 32)
            self._last = Requests(names, torch.zeros_like(left), left, turn)
        else:
            begins = left > self._left
            assert self._last.turn is not None
            initial = torch.where(begins, left, self._last.initial)
            self._last = Requests(self._last.names, self._last.first, initial, self._last.turn + begins)
        self._left = left
        return self._last
