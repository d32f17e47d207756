"""What a host is: a model, problems, a reward, and its own decisions about decoding.

Everything that fits, compares or shows works through this and knows nothing else of a host.
Shapes: N problems, L positions.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from dprm.decode.counts import CountRule
from dprm.decode.guards import HoldBack
from dprm.decode.loop import Denoiser
from dprm.decode.state import State
from dprm.decode.windows import Window
from dprm.order import Reading


@dataclass(frozen=True)
class Problems:
    """Problems to decode.

    Attributes:
        canvas: [N,L] int64, masked where to reveal.
        key: [N] int64 ≥ 0, the identity of each problem: the same problem has the same key in every split and run.
        facts: what the host needs to judge each answer.
    """

    canvas: Tensor
    key: Tensor
    facts: Sequence[Any]

    def __len__(self) -> int:
        return len(self.key)

    def __getitem__(self, rows: slice | Tensor) -> Problems:
        """Some of the problems, by slice or by index [n], which may repeat."""
        facts = [self.facts[row] for row in rows.tolist()] if isinstance(rows, Tensor) else self.facts[rows]
        return Problems(self.canvas[rows], self.key[rows], facts)

    def sampled(self, place: Tensor, samples: int) -> tuple[Problems, Tensor]:
        """The problems at place [n], each `samples` times, with a random stream of its own; and which is which."""
        group = place.repeat_interleave(samples)
        here = group.to(self.key.device)
        key = self.key[here] ^ (torch.arange(len(here), device=here.device) % samples)
        return replace(self[here], key=key), group

    @property
    def digest(self) -> str:
        """Names this set of problems, whatever their order."""
        return hashlib.sha256(self.key.sort().values.cpu().numpy().tobytes()).hexdigest()[:16]


class Host(ABC):
    """A masked diffusion model at work on one kind of problem.

    Class attributes:
        name, domain: for people and commands. ordered: what the order decides about.
        mask_id: the token that hides a position.
        aux_states: number of host-specific cell states; 1 means none.
        budget, window, guard, temperature: the host's own decoding.
        reward_range: declared range of the terminal reward. solved_at: the reward that counts as solved.
        columns: width of the canvas where it has two dimensions, for showing it.
    """

    name: ClassVar[str]
    domain: ClassVar[str]
    ordered: ClassVar[str]
    mask_id: int
    aux_states: int = 1
    budget: int | CountRule = 1
    window: Window | None = None
    guard: HoldBack | None = None
    temperature: float = 0.0
    reward_range: tuple[float, float] = (0.0, 1.0)
    solved_at: float = 1.0
    columns: int | None = None

    @abstractmethod
    def denoiser(self) -> Denoiser:
        """Tokens [B,L] → logits [B,L,V]."""

    @abstractmethod
    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """`count` distinct problems of a split: train, fit, select or test."""

    @abstractmethod
    def reward(self, problems: Problems, tokens: Tensor) -> Tensor:
        """[N] float32 terminal reward of finished canvases [N,L]."""

    def at(self, difficulty: str) -> Self:
        """The same host with problems of another difficulty, such as `5` or `22-25`; what that means is its own."""
        raise ValueError(f"difficulty is {difficulty!r}: the problems of host {self.name} have no difficulty to choose")

    def aux(self, state: State, reading: Reading) -> Tensor:
        """[B,L] int, the cell state of every position; asked for where `aux_states` is more than 1."""
        return torch.zeros_like(state.tokens)

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """A person's own problems from a text file, and one line for each that does not fit and is left out."""
        raise ValueError(f"host {self.name} takes no problem files")

    @abstractmethod
    def show(self, token: int) -> str:
        """One token as people read it; the mask as `·`."""
