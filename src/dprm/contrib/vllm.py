"""vLLM's dllm-plugin: its two seams, a batched function and a policy of one request.

    batched_remask(logits [B,L,V], input_draft [B,L], mask_token_id, threshold, …) → draft, done [B], transferred [B]
    RemaskingPolicy.apply(*, input_draft, logits, remasking_config) → committed_token_ids, next_input_block

Neither says which block of which request it is; the phase of a cell is the share of the block that is revealed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch

Remask = Callable[..., tuple[Tensor, Tensor, Tensor]]


def ordered(batched_remask: Remask, selector: Selector, watch: Watch | None = None) -> Remask:
    """The same function, committing as many positions as it would, chosen by a policy; goes to `_remask_fn`."""
    watch = watch or Watch()

    def choose(
        logits: Tensor, input_draft: Tensor, mask_token_id: int, threshold: float, *args: Any, **named: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        selector.expect_mask("mask_token_id is", mask_token_id)
        if args[:1] not in ((), (0.0,)) or named.get("temperature", 0.0) != 0:
            raise ValueError(
                "temperature is not 0: what the function drew is not shown, so others could not be revealed"
            )
        before = input_draft.clone()
        draft, done, transferred = batched_remask(logits, input_draft, mask_token_id, threshold, *args, **named)
        if not selector.idle:
            requests = watch.mixed(before == mask_token_id)
            # In place: newer versions are told by `out` which tensor the engine goes on with.
            draft.copy_(selector.revise(before, draft, logits, requests))
        return draft, done, transferred

    return choose


class OrderedPolicy:
    """A `RemaskingPolicy` around another one.

    It takes and gives Python integers, so each step waits once: for the tokens of its block.

    Args:
        base: counts, and commits blocks that are done.
    """

    def __init__(self, base: Any, selector: Selector):
        self.base, self.selector = base, selector
        self.watch = Watch()

    def apply(self, *, input_draft: Sequence[int], logits: Any = None, remasking_config: Any = None) -> Any:
        """One step of one block."""
        result = self.base.apply(input_draft=input_draft, logits=logits, remasking_config=remasking_config)
        # Where all was revealed there was nothing to choose.
        if self.selector.idle or result.committed_token_ids:
            return result
        if self.selector.mask_id not in input_draft:
            raise ValueError(f"input_draft has no mask {self.selector.mask_id}, and is not done: the model has another")
        numbers = torch.as_tensor(logits).unsqueeze(0)
        blocks = torch.tensor([list(input_draft), list(result.next_input_block)]).to(numbers.device, non_blocking=True)
        before, after = blocks[:1], blocks[1:]
        requests = self.watch.mixed(before == self.selector.mask_id)
        revised = self.selector.revise(before, after, numbers, requests)
        return replace(result, next_input_block=tuple(revised[0].tolist()))
