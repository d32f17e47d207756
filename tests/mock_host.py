"""A host whose decoding can be anything: problems of different lengths, and a reward that every token changes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dprm.decode import (
    Blocks,
    Compete,
    Cumulative,
    Decoding,
    EntropyBound,
    Even,
    Factor,
    Fixed,
    HoldBack,
    Remask,
    Threshold,
)
from dprm.decode.rows import Rows
from dprm.host.host import Host, Problems
from dprm.order import Order
from dprm.order.noise import mix_rows
from tests.mock_denoiser import MASK, VOCABULARY, MockDenoiser, masked_canvas

LENGTH = 10
# Every count rule, window, guard and way to revoke, alone and together.
DECODINGS = {
    "one": {},
    "three": {"count": Fixed(3)},
    "even": {"count": Even(4)},
    "threshold": {"count": Threshold(0.8)},
    "factor": {"count": Factor(2.0)},
    "entropy bound": {"count": EntropyBound(1.0)},
    "blocks": {"window": Blocks(3)},
    "blocks, two": {"window": Blocks(3), "count": Fixed(2)},
    "blocks, even": {"window": Blocks(4), "count": Even(2)},
    "blocks, threshold": {"window": Blocks(4), "count": Threshold(0.8)},
    "guard": {"guard": HoldBack((0, 1))},
    "guard, two": {"guard": HoldBack((0, 1)), "count": Fixed(2)},
    "guard, even": {"guard": HoldBack((0, 1)), "count": Even(4)},
    "guard, threshold": {"guard": HoldBack((0, 1)), "count": Threshold(0.8)},
    "guard, blocks": {"guard": HoldBack((0, 1)), "window": Blocks(4), "count": Fixed(2)},
    "together": {"together": 0.6},
    "compete": {"count": Cumulative(5), "revoke": Compete()},
    "remask": {"count": Even(8), "revoke": Remask(0.5)},
    "remask, drawn": {"count": Even(8), "revoke": Remask(0.5), "temperature": 1.0},
    "remask, guard": {"count": Even(8), "revoke": Remask(0.5), "guard": HoldBack((0, 1))},
    "drawn": {"temperature": 1.0, "count": Fixed(2)},
    "drawn, mode": {"temperature": 1.0, "confidence_of": "mode"},
    "random": {"signal": Order(signal="random").signal, "count": Fixed(2)},
    "entropy": {"signal": Order(signal="entropy").signal},
    "context": {"context": True, "count": Fixed(2)},
    "states": {
        "temperature": 1.0,
        "states": 3,
        "state_of": lambda canvas, reading: (canvas == MASK).long() + (reading.peak > 0.5),
    },
}
_DENOISER = MockDenoiser(1, sharpness=0.7)


class MockHost(Host):
    """Rewards are a hash of the answer: two answers that differ anywhere earn differently.

    With `context`, every row has an offset of its own that its model adds to the logits.
    """

    name = "mock"

    def __init__(self, context: bool = False, **decoding: Any):
        self.decoding, self.with_context = Decoding(mask_id=MASK, **decoding), context

    def model(self):
        return _shifted if self.with_context else _DENOISER

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        canvas, key = masked_canvas(count, LENGTH), torch.arange(count)
        # Every third row has less to reveal, and leaves the batch before the others.
        canvas[::3, 6:8] = 1
        offset = torch.randn(count, VOCABULARY, generator=torch.Generator().manual_seed(2))
        return Problems(canvas, key, list(range(count)), {"offset": offset} if self.with_context else None)

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        place_value = VOCABULARY ** torch.arange(LENGTH)
        return (mix_rows((tokens * place_value).sum(1), 3) >> 11 & (2**53 - 1)).double() / 2**53


def _shifted(tokens: Tensor, context: Rows | None) -> Tensor:
    return _DENOISER(tokens) + context["offset"].unsqueeze(1)
