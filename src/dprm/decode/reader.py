"""Readers: from what a model gives to the tokens a host would take and the four numbers the order sees.

A model that gives logits over one vocabulary needs none of its own. A host with another output (bits of a token,
several heads) brings an object with these two methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from dprm.decode.state import State
from dprm.order.checks import can_look, check_count, check_number
from dprm.order.noise import TOKEN, Stream
from dprm.order.reading import Noise, Reading, by_kernel, draw_and_read, logits_at, portions, read

# Logits that are drawn from at a time.
_AT_ONCE = 2**20


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

    def draw(self, output: Any, temperature: float, gumbel: Gumbel, eligible: Tensor | None = None) -> Tensor:
        """softmax(logits/temperature), by the Gumbel-max trick, piece by piece; 0 where it is not eligible [B,L]."""
        logits = logits_of(output)
        rows, length, vocabulary = logits.shape
        # Position by position: all rows have the same constants at one.
        number = torch.arange(rows * length, device=logits.device).view(rows, length).T.flatten()
        if eligible is not None and can_look(logits):
            number = number[eligible.T.flatten()]
        drawn = number.new_zeros(rows * length)
        for part in number.split_with_sizes(portions(len(number), max(1, _AT_ONCE // vocabulary))):
            place = part // length, part % length
            drawn[part] = self._drawn(logits_at(logits, part), *place, temperature, gumbel)
        return drawn.view(rows, length)

    def draw_at(self, x: Tensor, row: Tensor, position: Tensor, temperature: float, gumbel: Gumbel) -> Tensor:
        """[n], the same for logits x [n,V] of some positions, in the order of their positions."""
        parts = portions(len(x), max(1, _AT_ONCE // x.shape[1]))
        columns = zip(x.split_with_sizes(parts), row.split_with_sizes(parts), position.split_with_sizes(parts))
        return torch.cat([row.new_zeros(0), *(self._drawn(*part, temperature, gumbel) for part in columns)])

    def _drawn(self, x: Tensor, row: Tensor, position: Tensor, temperature: float, gumbel: Gumbel) -> Tensor:
        """[n] tokens of a piece."""
        vocabulary = x.shape[1]
        noisy = gumbel.at(row, position, vocabulary).add_(x, alpha=1.0 / temperature)
        for token in self.within(vocabulary):
            noisy[:, token] = -torch.inf
        if self.top_p < 1.0 or self.top_k:
            noisy.masked_fill_(~self._nucleus(x, temperature), -torch.inf)
        return noisy.argmax(1)

    def look(
        self, output: Any, temperature: float, gumbel: Gumbel, eligible: Tensor, confidence_of: str
    ) -> tuple[Tensor, Reading]:
        """Drawn tokens [B,L], and the reading of them or of the mode; in one pass where a kernel can."""
        logits = logits_of(output)
        if by_kernel(logits) and self.top_p == 1.0 and not self.top_k:
            forbid = self.within(logits.shape[-1])
            drawn, mode = draw_and_read(logits, gumbel.noise(logits.shape[-1], temperature), eligible, forbid)
            return drawn.tokens, drawn if confidence_of == "drawn" else mode
        tokens = self.draw(output, temperature, gumbel, eligible)
        return tokens, self.read(output, tokens if confidence_of == "drawn" else None, eligible)

    def read(self, output: Any, tokens: Tensor | None, eligible: Tensor | None = None) -> Reading:
        logits = logits_of(output)
        return read(logits, tokens, eligible, forbid=self.within(logits.shape[-1]))

    def within(self, vocabulary: int) -> list[int]:
        """The forbidden tokens that the model gives."""
        return [token for token in self.forbid if token < vocabulary]

    def _nucleus(self, logits: Tensor, temperature: float) -> Tensor:
        """[n,V] bool, what may be drawn; of equally probable tokens the first ones."""
        scaled = logits.float() / temperature
        for token in self.within(scaled.shape[-1]):
            scaled[:, token] = -torch.inf
        p, ranked = scaled.softmax(-1).sort(dim=-1, descending=True, stable=True)
        inside = p.cumsum(-1) - p < self.top_p
        if self.top_k:
            inside[..., self.top_k :] = False
        return torch.zeros_like(inside).scatter_(-1, ranked, inside)


@dataclass(frozen=True)
class Named(Logits):
    """Logits whose forbidden tokens a person has named: but for the first, the mask, the model gives them all."""

    def within(self, vocabulary: int) -> list[int]:
        for token in self.forbid[1:]:
            if token >= vocabulary:
                remedy = "a token that the model does not give need not be forbidden"
                raise ValueError(f"forbid is {token}: outside the vocabulary of {vocabulary}; {remedy}")
        return super().within(vocabulary)


@dataclass(frozen=True)
class Gumbel:
    """Standard Gumbel noise that stays with its position until the position is revealed.

    As the canvas changes, the value of a position follows the logits, but is not thrown again. Fresh noise at every
    step, with an order that prefers likely draws, would let every position try until it draws its mode.
    """

    state: State

    def __call__(self, count: int) -> Tensor:
        """[B,L,count], all of it."""
        rows, length = self.state.tokens.shape
        version = self.state.redrawn.repeat_interleave(count, 1)
        noise = self._stream().log_uniform(length * count, TOKEN, version=version)
        return noise.neg_().log_().neg_().view(rows, length, count)

    def at(self, row: Tensor, position: Tensor, count: int) -> Tensor:
        """[n,count], the noise of some positions [n]; equal positions stand side by side."""
        version = self.state.redrawn[row, position]
        return self._stream().log_uniform_at(row, position, count, TOKEN, version).neg_().log_().neg_()

    def noise(self, count: int, temperature: float) -> Noise:
        """What a kernel makes the noise of."""
        return Noise(self._stream().keys(TOKEN).flatten(), self.state.redrawn, count, temperature)

    def _stream(self) -> Stream:
        return Stream(self.state.seeds, 0.0, len(self.state), self.state.tokens.device)


def logits_of(output: Any) -> Tensor:
    """The logits of a model's output."""
    logits = getattr(output, "logits", output)
    logits = logits[0] if isinstance(logits, tuple | list) else logits
    if not isinstance(logits, Tensor):
        raise TypeError(f"the model gave {type(output).__name__}: expected logits, an output with .logits, or a tuple")
    return logits
