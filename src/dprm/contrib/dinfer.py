"""dInfer: a decoder around another one, for the runners of dInfer. Shapes: B rows, L positions, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector


class OrderedDecoder:
    """A `ParallelDecoder` of dInfer that reveals as many positions as `decoder` would, chosen by a policy.

    Args:
        decoder: any decoder of dInfer that takes the most probable token.
        names: one request a row of the batch; may be set anew before each.
    """

    def __init__(self, decoder: Any, selector: Selector, names: Sequence[str] | None = None):
        if getattr(decoder, "temperature", 0.0) != 0:
            remedy = "this decoder keeps the tokens it drew to itself, so that others could not be revealed"
            raise ValueError(f"temperature is {decoder.temperature}: expected 0; {remedy}")
        selector.expect_mask("decoder has mask_id", getattr(decoder, "mask_id", selector.mask_id))
        self.decoder, self.selector, self.names = decoder, selector, names
        self._requests: Requests | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.decoder, name)

    def block_init(self, block_x: Any, block_id: int) -> None:
        """The runner begins a block."""
        self.decoder.block_init(block_x, block_id)
        self._requests = None

    def decode(self, logits: Tensor, block_start: int, block_end: int, x: Any, *args: Any, **named: Any) -> Any:
        """One step of the decoder on x[:, block_start:block_end], and then the policy's choice, in place."""
        before = x[:, block_start:block_end].clone()
        if self._requests is None or len(self._requests.names) != len(before):
            names = self.names or [str(row) for row in range(len(before))]
            self._requests = Requests.begin(names, before == self.selector.mask_id, block_start)
        result = self.decoder.decode(logits, block_start, block_end, x, *args, **named)
        if not self.selector.idle:
            after = x[:, block_start:block_end]
            x[:, block_start:block_end] = self.selector.revise(before, after, logits, self._requests)
        return result
