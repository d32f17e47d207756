"""Dream (`model_type` Dream): logits that speak of the next position, and a schedule of its own.

Its own generation, with `alg` maskgit_plus, topk_margin or entropy, reveals ⌊n · (1 − s/t)⌋ of n masked positions at
every step, t falling evenly from 1 to eps, and all that is left at the last one. Steps that reveal nothing are left out
here: their call sees the canvas of the call before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dprm.contrib.hf.denoiser import ATTENTION, Denoiser, Length, positions_of
from dprm.order.checks import check_count
from dprm.order.reading import Reading


class Dream(Denoiser):
    """Logits are shifted by one; positions are told where rows are padded."""

    family = "dream"
    model_types = ("Dream", "dream")
    mask_id = 151666
    head = "lm_head"
    ends = ("<|im_end|>", "<|endoftext|>")
    lengths = Length(256, None, 256)

    def logits(self, tokens: Tensor, context: dict[str, Tensor]) -> Tensor:
        attention = context.get(ATTENTION)
        if attention is None:
            logits: Tensor = self.model(tokens, "full", None, **self.told).logits
            return torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        # Keys alone are hidden: a row of hidden queries would have nothing to look at.
        seen, place = attention[:, None, None, :].expand(-1, 1, tokens.shape[1], -1), positions_of(attention)
        logits = self.model(tokens, seen, place, **self.told).logits
        # The first token of a text has nobody before it, wherever it stands.
        before = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        return torch.where((place == 0).unsqueeze(2), logits, before)

    @classmethod
    def decoding(
        cls, length: Length, forbid: tuple[int, ...], top_p: float, top_k: int, ends: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        own = super().decoding(length, forbid, top_p, top_k)
        if not length.length:
            return own
        return {**own, "count": Falling(length.length, length.steps or length.length)}


@dataclass(frozen=True)
class Falling:
    """Dream's count: of n masked positions ⌊n · (1 − s/t)⌋ in float32, from t to s evenly from 1 to eps.

    Attributes:
        length: masked positions at the start, of every row. asked: T, of which some may reveal nothing.
        counts: of the steps that reveal. steps: how many they are.
    """

    length: int
    asked: int
    eps: float = 1e-3
    counts: tuple[int, ...] = field(init=False, repr=False)
    steps: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_count("steps", self.asked, 1)
        counts, left = list[int](), self.length
        times = torch.linspace(1, self.eps, self.asked + 1)
        for step in range(self.asked):
            share = 1 - times[step + 1] / times[step]
            count = left if step == self.asked - 1 else int(torch.tensor(float(left)) * share)
            counts += [count] if count else []
            left -= count
        object.__setattr__(self, "counts", tuple(counts))
        object.__setattr__(self, "steps", len(counts))

    def __call__(self, reading: Reading, candidates: Tensor, step: Tensor) -> Tensor:
        counts = torch.tensor(self.counts, device=step.device)
        return counts[step.clamp(max=len(counts) - 1)]
