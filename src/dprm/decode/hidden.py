"""Hidden: a model that leaves its output head to the decoder, which computes it where something may be revealed.

The output head of a language model is a product with a matrix as large as its vocabulary. A step needs it where
something is masked, and with a window only inside it. Shapes: B rows, L positions, D width, V vocabulary, n positions
asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.decode.decoding import Decoding
from dprm.decode.reader import Gumbel, Logits
from dprm.decode.state import State
from dprm.order.reading import Reading


@dataclass(frozen=True)
class Hidden:
    """What a model gives before its output head.

    Attributes:
        states: [B,L,D].
        head: states [n,D] → logits [n,V], the same for a position whatever the others are.
    """

    states: Tensor
    head: Callable[[Tensor], Tensor]


def read_hidden(
    hidden: Hidden, reader: Logits, state: State, masked: Tensor, asked: Tensor, decoding: Decoding
) -> Reading:
    """The reading of a step, as `loop.read_canvas` gives it of all logits; masked, asked: [B,L] bool.

    How many positions are asked for has to be known: an accelerator is waited for, once a step.
    """
    rows, length = masked.shape
    # Position by position, as the noise of a draw wants it.
    number = torch.arange(rows * length, device=masked.device).view(rows, length).T[asked.T]
    logits = hidden.head(hidden.states.flatten(0, 1)[number]).unsqueeze(0)
    drawn = None
    if decoding.temperature > 0:
        drawn = reader.draw_at(logits[0], number // length, number % length, decoding.temperature, Gumbel(state))[None]
    reading = reader.read(logits, drawn if decoding.confidence_of == "drawn" else None)
    shown = reading.tokens if drawn is None else drawn
    if decoding.revoke is not None:
        was, is_masked = state.tokens.flatten()[number][None], masked.flatten()[number][None]
        reading = reader.read(logits, torch.where(is_masked, reading.tokens, was))

    def everywhere(column: Tensor) -> Tensor:
        return column.new_zeros(rows * length).index_copy_(0, number, column[0]).view(rows, length)

    return Reading(
        tokens=torch.where(masked, everywhere(shown), state.tokens),
        confidence=everywhere(reading.confidence),
        margin=everywhere(reading.margin),
        entropy=everywhere(reading.entropy),
        peak=None if reading.peak is None else everywhere(reading.peak),
    )
