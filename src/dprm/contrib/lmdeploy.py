"""LMDeploy: an `UnmaskingProcessor` around another one. Shapes: N tokens of all blocks together, V vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch

# As in lmdeploy.pytorch.consts.
MASKED, UNMASKED = 0, 1


class OrderedUnmasking:
    """Called like the processor: (logits [N,V], input_ids [N], token_ids [N], dllm_mask [N]) → dllm_mask, token_ids.

    Args:
        processor: counts, and moves blocks that are done to the cache.
    """

    def __init__(self, processor: Any, selector: Selector):
        self.processor, self.selector = processor, selector
        self.watch = Watch()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.processor, name)

    def __call__(self, logits: Tensor, input_ids: Tensor, token_ids: Tensor, dllm_mask: Tensor) -> Any:
        """One step of all blocks."""
        # Older releases call it dllm_block_length.
        config = self.processor.dllm_config
        length = config.block_length if hasattr(config, "block_length") else config.dllm_block_length
        masked = (dllm_mask == MASKED).view(-1, length)
        result = self.processor(logits, input_ids, token_ids, dllm_mask)
        if self.selector.idle or not isinstance(result, tuple):
            return result
        after, tokens = result
        own = masked & (after.view_as(masked) == UNMASKED)
        chosen = self.selector.select(
            own,
            None,
            masked,
            self.watch.mixed(masked),
            logits=logits.view(*masked.shape, -1),
            tokens=tokens.view_as(masked),
        )
        state = torch.where(chosen, UNMASKED, torch.where(masked, MASKED, after.view_as(masked)))
        return state.flatten().to(after.dtype), tokens
