"""Any `AutoModelForMaskedLM`: BERT, RoBERTa, ModernBERT, ESM-2 and their kin.

A prompt has its own masks, or masks are appended to it before the closing token. Rows are padded on the right, where
every model of this kind sees the same positions as without padding. These models have no generation of their own: one
position a step by confidence.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dprm.contrib.hf.denoiser import ATTENTION, Denoiser, Length


class MaskedLM(Denoiser):
    """A model of transformers with a masked-language head."""

    family = "masked_lm"
    loader = "AutoModelForMaskedLM"
    left = False
    words_only = True
    lengths = Length(0, None, None)

    def logits(self, tokens: Tensor, context: dict[str, Tensor]) -> Tensor:
        attention = context.get(ATTENTION)
        told: dict[str, Any] = {} if attention is None else {"attention_mask": attention.long()}
        logits: Tensor = self.model(input_ids=tokens, **told, **self.told).logits
        return logits

    @classmethod
    def decoding(
        cls, length: Length, forbid: tuple[int, ...], top_p: float, top_k: int, ends: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        return {"top_p": top_p, "top_k": top_k, "forbid": forbid}
