"""vLLM's dllm-plugin: its two seams, a batched function and a policy of one request.

    batched_remask(logits [B,L,V], input_draft [B,L], mask_token_id, threshold) → draft, all_done [B], transferred [B]
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
        if mask_token_id != selector.mask_id:
            raise ValueError(f"mask_token_id is {mask_token_id}: expected that of the selector, {selector.mask_id}")
        if args[:1] not in ((), (0.0,)) or named.get("temperature", 0.0) != 0:
            raise ValueError(
                "temperature is not 0: what the function drew is not shown, so others could not be revealed"
            )
        draft, done, transferred = batched_remask(logits, input_draft, mask_token_id, threshold, *args, **named)
        if selector.idle:
            return draft, done, transferred
        requests = watch.mixed(input_draft == mask_token_id)
        return selector.revise(input_draft, draft, logits, requests), done, transferred

    return choose


class OrderedPolicy:
    """A `RemaskingPolicy` around another one.

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
        before, after = (torch.tensor([list(block)]) for block in (input_draft, result.next_input_block))
        numbers = logits if isinstance(logits, Tensor) else torch.tensor(logits)
        requests = self.watch.mixed(before == self.selector.mask_id)
        revised = self.selector.revise(before, after, numbers.cpu().unsqueeze(0), requests)
        return replace(result, next_input_block=tuple(revised[0].tolist()))
