"""Confidence of two streams: a structure token's is the geometric mean over its bits, p^(1/3).

A product of bits is small however sure each of them is: binned as it is, every code would be in the lowest cell. Inside
a stream the order by it is that by the product. Shapes: B rows, L positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.decode.reader import Logits
from dprm.hosts.dplm.tokens import BITS, STRUCTURE
from dprm.order.reading import Reading


@dataclass(frozen=True)
class TwoStreams(Logits):
    """Logits of letters and of codes."""

    def read(self, output: Any, tokens: Tensor | None, eligible: Tensor | None = None) -> Reading:
        reading = super().read(output, tokens, eligible)
        structure = STRUCTURE.to(reading.confidence.device)
        peak = reading.confidence if reading.peak is None else reading.peak
        confidence, peak = (torch.where(structure, each.pow(1 / BITS), each) for each in (reading.confidence, peak))
        return replace(reading, confidence=confidence, peak=peak)
