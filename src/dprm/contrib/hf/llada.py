"""LLaDA: LLaDA-8B (Base, Instruct), LLaDA-1.5, and whatever is saved in their format (`model_type` llada).

Its own generation: blocks one after the other, an even share of a block a step, the largest softmax(logits)[token]
first. The two end-of-text rules of the public function are not reproduced as they are written: use a guard.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dprm.contrib.hf.denoiser import ATTENTION, Denoiser, Length
from dprm.decode.counts import Even
from dprm.decode.windows import Blocks


class LLaDA(Denoiser):
    """Aligned logits; bidirectional attention."""

    family = "llada"
    model_types = ("llada",)
    mask_id = 126336
    head = "model.transformer.ff_out"
    ends = ("<|eot_id|>", "<|endoftext|>")

    def logits(self, tokens: Tensor, context: dict[str, Tensor]) -> Tensor:
        logits: Tensor = self.model(tokens, **self.masked(context), **self.told).logits
        return logits

    def masked(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """Padding as the model takes it.

        The public model asks whether there is a 0 in an attention mask, which stops an accelerator; handed over as the
        bias that it makes of the mask, nothing is asked.
        """
        attention = context.get(ATTENTION)
        if attention is None:
            return {}
        if "attention_bias" not in self.takes:
            return {"attention_mask": attention.long()}
        bias = torch.zeros(attention.shape, device=attention.device)
        return {"attention_bias": bias.masked_fill_(~attention, torch.finfo(bias.dtype).min)[:, None, None, :]}

    @classmethod
    def decoding(
        cls, length: Length, forbid: tuple[int, ...], top_p: float, top_k: int, ends: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        own = super().decoding(length, forbid, top_p, top_k)
        if not length.length:
            return own
        assert length.block is not None
        if length.length % length.block:
            raise ValueError(f"length is {length.length}: expected a multiple of block, {length.block}")
        blocks = length.length // length.block
        steps = length.length if length.steps is None else length.steps
        if steps % blocks:
            raise ValueError(f"steps is {steps}: expected a multiple of the {blocks} blocks, for each as many")
        return {**own, "count": Even(steps // blocks), "window": Blocks(length.block)}
