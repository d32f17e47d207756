"""What Omni-Diffusion does to logits before it takes a token and an entropy from them, in its order:

    top-p        tokens outside of the smallest set with probability 0.9 have none
    repetition   of tokens that the canvas has already, logits < 0 are multiplied by 1.2, others divided by it
    position     logits of the k-th masked position are divided by 1 up to k = 100, then by 1 … 2, linearly to the last

The last makes late positions look less sure, so that an order by entropy goes from left to right, softly.
Shapes: B rows, L positions, V = 17 codes and format tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.hosts.omni import canvas
from dprm.train.denoiser import Denoiser
from dprm.train.transformer import Transformer


@dataclass(frozen=True)
class Penalties:
    """Their strengths: `top_p`, `repetition`, and `position` at the last masked position after `free` ones."""

    top_p: float = 0.9
    repetition: float = 1.2
    position: float = 2.0
    free: int = 100

    def __call__(self, logits: Tensor, tokens: Tensor) -> Tensor:
        """[B,L,V] of logits [B,L,V] of canvases [B,L]."""
        ranked, rank = logits.sort(dim=-1, descending=True)
        p = ranked.softmax(-1)
        outside = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, rank, p.cumsum(-1) - p >= self.top_p)
        present = torch.zeros(len(tokens), canvas.VOCABULARY, dtype=torch.bool, device=tokens.device)
        present = present.scatter(1, tokens, True)[:, None, : logits.shape[-1]]
        scale = torch.where(logits < 0, self.repetition, 1.0 / self.repetition)
        logits = torch.where(present, logits * scale, logits)
        masked = tokens == canvas.MASK
        place = masked.cumsum(1) - 1 - self.free
        last = masked.sum(1, keepdim=True) - 1 - self.free
        flat = 1.0 + (self.position - 1.0) * place.clamp(min=0) / last.clamp(min=1)
        return (logits / flat.unsqueeze(-1)).masked_fill(outside, -torch.inf)


class Painter(Denoiser):
    """A trained model as a denoiser whose logits, of codes and format tokens alone, are penalised."""

    def __init__(self, model: Transformer, penalties: Penalties | None = None):
        super().__init__(model)
        self.penalties = penalties or Penalties()

    @torch.no_grad()
    def __call__(self, tokens: Tensor) -> Tensor:
        return self.penalties(super().__call__(tokens)[..., : canvas.SHOWN].float(), tokens)
