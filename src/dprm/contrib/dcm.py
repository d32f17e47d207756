"""DCM: its score function as a model for `dprm.decode`. Nothing of it is replaced, for it has no order of its own.

    masked share m = 1 − e^{−σ}    ⇒    σ = −log(1 − m)

The model is conditioned on how much is masked, which the canvas says. Shapes: B rows, L genes, V bins and the mask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.order.checks import can_look, check_count


@dataclass(frozen=True)
class ScoreModel:
    """tokens [B,L] → logits [B,L,V], for `dprm.decode`.

    Attributes:
        score: (tokens, σ [B]) → log-scores [B,L,V+1], such as `model.score`.
        mask_id: has to be above every bin of the data.
        least: the masked share never counts as closer to 1 than this, or σ would be infinite.
    """

    score: Callable[[Tensor, Tensor], Tensor]
    mask_id: int
    least: float = 1e-3

    def __post_init__(self) -> None:
        check_count("mask_id", self.mask_id, 1)

    def __call__(self, tokens: Tensor) -> Tensor:
        """Logits of the bins; those of the mask are left out."""
        if can_look(tokens) and int(tokens.max()) > self.mask_id:
            raise ValueError(f"tokens has {int(tokens.max())}: the mask {self.mask_id} has to be above every bin")
        share = (tokens == self.mask_id).float().mean(1).clamp(max=1.0 - self.least)
        scores = self.score(tokens, -torch.log1p(-share))
        if scores.shape[-1] != self.mask_id + 1:
            wanted = f"{self.mask_id + 1}, the bins and then the mask {self.mask_id}"
            raise ValueError(f"score gives {scores.shape[-1]} columns: expected {wanted}")
        return scores[..., : self.mask_id]
