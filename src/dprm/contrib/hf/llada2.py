"""LLaDA-2.x (`model_type` llada2_moe): blocks that see what stands before them, aligned to the absolute position.

Its own generation: in the block that holds the first mask, every position above a threshold, at least an even share
of a step. The first block holds the end of the prompt, the last one is whole. When a block is done in which the text
has ended, the answer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.hf.denoiser import ATTENTION, Denoiser, Length, positions_of
from dprm.contrib.hf.reuse import KeptBlocks
from dprm.decode.state import State
from dprm.order.checks import check_count, check_number
from dprm.order.reading import Reading

BLOCK = 32


class LLaDA2(Denoiser):
    """Aligned logits; block-causal attention."""

    family = "llada2"
    model_types = ("llada2_moe",)
    loader = "AutoModelForCausalLM"
    mask_id = 156895
    head = "lm_head"
    ends = ("<|role_end|>", "<|endoftext|>")
    lengths = Length(128, BLOCK, None)

    def __init__(self, model: torch.nn.Module, block: int = BLOCK):
        super().__init__(model)
        self.block = block
        self.kept: KeptBlocks | None = None

    def logits(self, tokens: Tensor, context: dict[str, Tensor]) -> Tensor:
        attention = context.get(ATTENTION, torch.ones_like(tokens, dtype=torch.bool))
        place = positions_of(attention)
        dtype = self.model.get_input_embeddings().weight.dtype
        if self.kept is not None:
            return self.kept(self._with_cache, tokens, attention, place, dtype)
        block = place // self.block
        seen = (block.unsqueeze(2) >= block.unsqueeze(1)) & attention.unsqueeze(1)
        bias = torch.zeros(seen.shape, dtype=dtype, device=tokens.device).masked_fill_(~seen, -torch.inf)
        told = {"attention_mask": bias.unsqueeze(1), "position_ids": place}
        logits: Tensor = self.model(tokens, **told, **self.told).logits
        return logits

    @property
    def plain(self) -> bool:
        return super().plain and self.kept is None

    def keep_blocks(self, mask_id: int) -> None:
        """From now on compute what is not known of the blocks that are done, and the block at work."""
        if "past_key_values" not in self.takes:
            raise ValueError("the model takes no past_key_values: keys and values of its blocks cannot be kept")
        self.kept = KeptBlocks(mask_id, self.block)

    def _with_cache(self, tokens: Tensor, bias: Tensor, place: Tensor, cache: Any) -> Tensor:
        told = {**self.told, "use_cache": True, "past_key_values": cache}
        logits: Tensor = self.model(tokens, attention_mask=bias, position_ids=place, **told).logits
        return logits

    def masks(self, asked: int, length: int) -> int:
        """The last block is whole; what stands behind the answer is cut off."""
        return length + -(asked + length) % self.block

    def settle(self, length: Length) -> None:
        self.block = length.block or BLOCK

    @classmethod
    def length_of(cls, asked: Length) -> Length:
        return Length(cls.lengths.length if asked.length is None else asked.length, asked.block or BLOCK, asked.steps)

    @classmethod
    def decoding(
        cls, length: Length, forbid: tuple[int, ...], top_p: float, top_k: int, ends: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        block = length.block or BLOCK
        own = super().decoding(length, forbid, top_p, top_k)
        # A prompt with masks of its own goes on behind the end of a text.
        window = Aligned(block, ends if length.length else ())
        return {**own, "count": Surpassing(block, length.steps or block), "window": window}


@dataclass(frozen=True)
class Aligned:
    """One block after the other, counted from the first token of the text and not from the first mask.

    Attributes:
        length: of a block. ends: a block that is done and has one of these tokens in the answer is the last.
    """

    length: int
    ends: tuple[int, ...] = ()

    def __call__(self, state: State, eligible: Tensor) -> tuple[Tensor, Tensor]:
        block, current = self._current(state, eligible)
        return eligible & (block == current), current.squeeze(1)

    def ended(self, state: State, masked: Tensor) -> Tensor:
        """[B] bool, the rows whose text has ended before the block at work."""
        block, current = self._current(state, masked)
        end = torch.zeros_like(masked)
        for token in self.ends:
            end |= state.tokens == token
        return (end & ~state.given & (block < current)).any(1)

    def _current(self, state: State, masked: Tensor) -> tuple[Tensor, Tensor]:
        """[B,L] the block of every position, and [B,1] the first that holds a mask."""
        place = torch.arange(masked.shape[1], device=masked.device).expand(masked.shape)
        if isinstance(state.context, Mapping) and ATTENTION in state.context:
            place = positions_of(state.context[ATTENTION])
        block = place // self.length
        return block, torch.where(masked, block, masked.shape[1]).amin(1, keepdim=True)


@dataclass(frozen=True)
class Surpassing:
    """Every position above τ if they are at least an even share of the block, or else that share.

    Attributes:
        block: positions of a block. per_block: T, the steps whose shares are even, the larger ones first.
    """

    block: int
    per_block: int
    tau: float = 0.95

    def __post_init__(self) -> None:
        check_count("steps", self.per_block, 1)
        check_number("tau", self.tau, 0, 1)

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> Tensor:
        share = self.block // self.per_block + (step < self.block % self.per_block)
        sure = (candidates & (reading.confidence > self.tau)).sum(1)
        return torch.minimum(torch.maximum(share, sure).clamp(min=1), candidates.sum(1))
