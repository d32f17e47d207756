"""Confidence of two streams: a structure token's is the geometric mean over its bits, p^(1/3).

A product of bits is small however sure each of them is: binned as it is, every code would be in the lowest cell. Inside
a stream the order by it is that by the product. Shapes: B rows, L positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.decode.reader import Gumbel, Logits
from dprm.hosts.dplm.tokens import BITS, MASK, PAD, STRUCTURE
from dprm.order.reading import Reading

_LOGITS = Logits((MASK, PAD))


@dataclass(frozen=True)
class TwoStreams:
    """Reads logits of letters and of codes; no kernel reads past it."""

    def draw(self, output: Any, temperature: float, gumbel: Gumbel) -> Tensor:
        return _LOGITS.draw(output, temperature, gumbel)

    def read(self, output: Any, tokens: Tensor | None) -> Reading:
        reading = _LOGITS.read(output, tokens)
        structure = STRUCTURE.to(reading.confidence.device)
        peak = reading.confidence if reading.peak is None else reading.peak
        confidence, peak = (torch.where(structure, each.pow(1 / BITS), each) for each in (reading.confidence, peak))
        return replace(reading, confidence=confidence, peak=peak)
