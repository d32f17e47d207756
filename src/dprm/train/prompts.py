"""Prompts for post-training, and the reward of an answer.

Which prompts a refresh sees is a function of (seed, refresh) alone: every arm of a comparison answers the same ones.
Shapes: P prompts, N answers, L positions.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from dprm.data.draws import Draws
from dprm.host.host import Host, Problems


class Prompts(Protocol):
    """An endless supply of prompts with a verifier.

    Attributes:
        mask_id: the token that hides a position.
    """

    mask_id: int

    def draw(self, refresh: int, count: int) -> tuple[Tensor, Tensor]:
        """index [P] int64 on the CPU, naming the prompts, and canvases [P,L]: a pure function of its arguments."""

    def reward(self, index: Tensor, tokens: Tensor) -> Tensor:
        """[N] float64 on the CPU: the terminal reward of answers [N,L] to the prompts index [N]."""


class HostPrompts:
    """Prompts drawn evenly from a stock of a host's problems and judged by the host.

    Args:
        host: judges; its own model is not used. problems: the stock, on the device of the model under training.
        seed: of the order in which they come.
    """

    def __init__(self, host: Host, problems: Problems, seed: int = 0):
        if not len(problems):
            raise ValueError("problems is empty: expected at least one to draw from")
        self.host, self.problems, self.seed = host, problems, seed
        self.mask_id = host.mask_id

    def draw(self, refresh: int, count: int) -> tuple[Tensor, Tensor]:
        index = Draws("prompts", self.seed, refresh).below(len(self.problems), count)
        return index, self.problems.canvas[index]

    def reward(self, index: Tensor, tokens: Tensor) -> Tensor:
        facts = [self.problems.facts[place] for place in index.tolist()]
        asked = Problems(self.problems.canvas[index], self.problems.key[index], facts)
        return self.host.reward(asked, tokens).double().cpu()
