"""LLaDA-V: a canvas of which some positions are embeddings, such as the patches of an image.

Its own code makes the embeddings of a prompt; they travel with the row as `context`:

    prepared = model.prepare_inputs_labels_for_multimodal(ids, None, None, None, None, images, ["image"])
    context = embedded(prepared[4], length)          # prompts [B,P,D], and room for an answer
    canvas = blank(prepared[4], length, mask_id)     # the same shape in tokens

Tokens stand where the model is to read tokens: at the answer.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dprm.contrib.hf.denoiser import ATTENTION, EMBEDDED, EMBEDDINGS, Length
from dprm.contrib.hf.llada import LLaDA


class LLaDAV(LLaDA):
    """A language model under a multimodal one, called with embeddings."""

    family = "llada_v"
    head = "lm_head"
    model_types = ("llava_llada",)
    loader = "AutoModelForCausalLM"
    lengths = Length(16, 16, 16)

    def logits(self, tokens: Tensor, context: dict[str, Tensor]) -> Tensor:
        inputs = self.model.get_input_embeddings()(tokens)
        if EMBEDDINGS in context:
            inputs = torch.where(context[EMBEDDED].unsqueeze(-1), context[EMBEDDINGS].to(inputs.dtype), inputs)
        attention = context.get(ATTENTION)
        told: dict[str, Any] = {} if attention is None else {"attention_mask": attention.long()}
        hidden = self.model.model(inputs_embeds=inputs, **told)[0]
        logits: Tensor = self.model.lm_head(hidden).float()
        return logits


def embedded(prompts: Tensor, length: int, attention: Tensor | None = None) -> dict[str, Tensor]:
    """The context of prompts [B,P,D] that are embeddings, with room for an answer.

    Args:
        attention: [B,P] bool, False at padding on the left.
    """
    rows, places, _ = prompts.shape
    known = torch.ones(rows, places, dtype=torch.bool, device=prompts.device)
    context = {EMBEDDINGS: F.pad(prompts, (0, 0, 0, length)), EMBEDDED: F.pad(known, (0, length))}
    return context if attention is None else {**context, ATTENTION: F.pad(attention, (0, length), value=True)}


def blank(prompts: Tensor, length: int, mask_id: int, placeholder: int = 0) -> Tensor:
    """Canvases [B,P+length] int64 with the answer masked; the placeholder stands for what is embedded."""
    rows, places, _ = prompts.shape
    canvas = torch.full((rows, places + length), placeholder, device=prompts.device)
    canvas[:, places:] = mask_id
    return canvas
