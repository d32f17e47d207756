"""Readers: from what a model gives to the tokens a host would take and the four numbers the order sees.

A model that gives logits over one vocabulary needs none of its own. A host with another output (bits of a token,
several heads) brings an object with these two methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from dprm.order.checks import check_count, check_number
from dprm.order.reading import Reading, read


class Gumbel(Protocol):
    """Standard Gumbel noise of the canvases that are read; a position keeps its own until it is revealed."""

    def __call__(self, count: int) -> Tensor:
        """[B,L,count], for `count` values at every position."""

    def hidden(self) -> Tensor | None:
        """[B,L] bool, the masked positions; None on an accelerator, which would have to be waited for."""

    def at_hidden(self, count: int) -> Tensor:
        """[n,count], the same numbers at the n masked positions only."""


class Reader(Protocol):
    """Reads the output of a model."""

    def draw(self, output: Any, temperature: float, gumbel: Gumbel) -> Tensor:
        """[B,L] tokens drawn at a temperature > 0, at least where something is masked; see `Gumbel`."""

    def read(self, output: Any, tokens: Tensor | None) -> Reading:
        """The reading of these tokens [B,L]; None: of the most probable ones."""


@dataclass(frozen=True)
class Logits:
    """Reads logits [B,L,V], bare, in a tuple, or as the `.logits` of an output object.

    Attributes:
        forbid: tokens that are never revealed: the mask and its like. The model need not give them all.
        top_p, top_k: draw from the smallest set of tokens that has this probability, and from at most so many; 0: all.
    """

    forbid: tuple[int, ...] = ()
    top_p: float = 1.0
    top_k: int = 0

    def __post_init__(self) -> None:
        check_number("top_p", self.top_p, 0, 1, open_low=True)
        check_count("top_k", self.top_k, 0)

    def draw(self, output: Any, temperature: float, gumbel: Gumbel) -> Tensor:
        """softmax(logits/temperature), by the Gumbel-max trick."""
        logits = logits_of(output)
        vocabulary = logits.shape[-1]
        hidden = gumbel.hidden()
        if hidden is not None:  # What is visible needs no noise: most of a large vocabulary's work.
            tokens = torch.zeros_like(hidden, dtype=torch.int64)
            tokens[hidden] = self._drawn(logits[hidden], temperature, gumbel.at_hidden(vocabulary))
            return tokens
        return self._drawn(logits, temperature, gumbel(vocabulary))

    def _drawn(self, logits: Tensor, temperature: float, gumbel: Tensor) -> Tensor:
        """[…] tokens of logits […,V] and their noise, which is overwritten."""
        vocabulary = logits.shape[-1]
        noisy = gumbel.add_(logits, alpha=1.0 / temperature)
        for token in self.forbid:
            if token < vocabulary:
                noisy[..., token] = -torch.inf
        if self.top_p < 1.0 or self.top_k:
            noisy.masked_fill_(~self._nucleus(logits, temperature), -torch.inf)
        return noisy.argmax(-1)

    def read(self, output: Any, tokens: Tensor | None) -> Reading:
        logits = logits_of(output)
        return read(logits, tokens, forbid=[token for token in self.forbid if token < logits.shape[-1]])

    def _nucleus(self, logits: Tensor, temperature: float) -> Tensor:
        """[…,V] bool, what may be drawn; of equally probable tokens the first ones."""
        scaled = logits.float() / temperature
        for token in self.forbid:
            if token < scaled.shape[-1]:
                scaled[..., token] = -torch.inf
        p, ranked = scaled.softmax(-1).sort(dim=-1, descending=True, stable=True)
        inside = p.cumsum(-1) - p < self.top_p
        if self.top_k:
            inside[..., self.top_k :] = False
        return torch.zeros_like(inside).scatter_(-1, ranked, inside)


def logits_of(output: Any) -> Tensor:
    """The logits of a model's output."""
    logits = getattr(output, "logits", output)
    logits = logits[0] if isinstance(logits, tuple | list) else logits
    if not isinstance(logits, Tensor):
        raise TypeError(f"the model gave {type(output).__name__}: expected logits, an output with .logits, or a tuple")
    return logits
