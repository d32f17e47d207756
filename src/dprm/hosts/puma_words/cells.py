"""The cell state of an answer position: is it the end, what kind of token, and how far from what is known?

    aux = (EOT · 4 + class) · 3 + distance   ∈ 0 … 23
    EOT       1 if the predicted token is EOT
    class     of the predicted token: 0 digit, 1 operator + - * /, 2 separator = ; #, 3 other
    distance  to the nearest visible answer position: 0: next to it, 1: 2 … 4 positions, 2: farther, or none is visible

Digits are confident long before they are right, and EOT is confident from the start: a table that knows only phase and
confidence cannot tell them apart. Shapes: B rows, L = 112 positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.hosts.puma_words.stories import OPERATORS
from dprm.hosts.puma_words.words import CHARACTERS, DIGITS, EOT, MASK, PROMPT
from dprm.order import Reading

STATES = 24
NEAR = 4


def token_class(tokens: Tensor) -> Tensor:
    """0 … 3 for digits, operators, separators and all others; the vocabulary lists them in this order."""
    operators = len(DIGITS) + len(OPERATORS)
    return (tokens >= len(DIGITS)).long() + (tokens >= operators) + (tokens >= len(CHARACTERS))


def distance_to_visible(canvas: Tensor) -> Tensor:
    """[B,L] int64: |i − j| to the nearest answer position j ≠ mask, 0 where i itself is visible; 2L where none is."""
    length = canvas.shape[1]
    place = torch.arange(length, device=canvas.device).expand_as(canvas)
    visible = (canvas != MASK) & (place >= PROMPT)
    far = 2 * length
    before = torch.where(visible, place, -far).cummax(1).values
    after = torch.where(visible, place, 2 * far).flip(1).cummin(1).values.flip(1)
    return torch.minimum(place - before, after - place).clamp(max=far)


def cell_state(canvas: Tensor, reading: Reading) -> Tensor:
    """[B,L] int64 in 0 … 23, the state of every position of canvases [B,L]."""
    distance = distance_to_visible(canvas)
    near = (distance > 1).long() + (distance > NEAR)
    return ((reading.tokens == EOT).long() * 4 + token_class(reading.tokens)) * 3 + near
