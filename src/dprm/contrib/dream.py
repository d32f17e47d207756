"""Dream, and Omni-Diffusion: an order through the hook that their generation already has; nothing is replaced.

    model.diffusion_generate(…, generation_tokens_hook_func=OrderHook(selector))

The hook sees the text after every step. Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector


class OrderHook:
    """`generation_tokens_hook_func`: takes back what the host revealed, and reveals as many, chosen by a policy.

    Args:
        names: one request a row of the batch.
        tokens: (text, logits) → [B,L], what positions receive that the host did not choose; None: the most probable
            token. Hosts that shape their logits (Omni's penalties) or draw (a temperature) need theirs here.
    """

    def __init__(
        self,
        selector: Selector,
        names: Sequence[str] | None = None,
        tokens: Callable[[Tensor, Tensor], Tensor] | None = None,
    ):
        self.selector, self.names, self.tokens = selector, names, tokens
        self._before: Tensor | None = None
        self._requests: Requests | None = None

    def __call__(self, step: int | None, x: Tensor, logits: Tensor | None) -> Tensor:
        """The text to go on with; the host calls once with None before its first step."""
        if step is None or logits is None:
            masked = x == self.selector.mask_id
            # The one look at a value, before the first step: with another mask every step would be the host's own.
            if not bool(masked.any()):
                raise ValueError(f"x has no mask {self.selector.mask_id}: the model has another one")
            names = self.names or [str(row) for row in range(len(x))]
            self._requests = Requests.begin(names, masked)
            self._before = x.clone()
            return x
        if self._before is None or self._requests is None:
            raise ValueError("step comes before the text was seen: the host has to call its hook with None first")
        others = None if self.tokens is None else self.tokens(self._before, logits)
        after = self.selector.revise(self._before, x, logits, self._requests, tokens=others)
        self._before = after.clone()
        return after
