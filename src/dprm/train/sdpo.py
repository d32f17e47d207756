"""Stepwise decomposition preference optimisation (SDPO), the objective that fine-tunes on rewarded sequences.

The target is the reward-tilted law p*(x) ∝ p_ref(x) e^{r(x)/β}. Of a batch of sequences, each with one mask, the law of
the rewards inside the batch is matched by that of the model's log-ratios:

    ℓ(x) = (n/|M|) Σ_{j∈M} −log p(x_j | x without M)         the same M for the model and for its reference
    g_i = −β (ℓ_θ(x_i) − ℓ_ref(x_i))
    loss = KL( softmax(s·r) ‖ softmax(g) )

- The masks must be shared: with masks of their own the two ℓ differ although the models do not, and g is noise. (A
  published variant takes ℓ_θ on ordered masks and ℓ_ref on random ones.)
- Rewards in [0, 1] differ by little; s puts them on the scale of the log-activities the method was made for.
- While the model is the reference, g = 0 and the gradient is that of −Σ (softmax(s·r) − 1/B) g: sequences above the
  batch's mean of e^{s·r} gain likelihood, the others lose it.

Shapes: B sequences, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.decode.loop import Model
from dprm.order.checks import check_number, check_shape
from dprm.train.masks import Canvases
from dprm.train.objective import likelihood_bound


@dataclass(frozen=True)
class Sdpo:
    """The objective.

    Attributes:
        reference: tokens [B,L] → logits [B,L,V] of p_ref, frozen.
        reward: clean sequences [B,L] → [B] in [0, 1].
        beta: β. scale: s.
    """

    reference: Model
    reward: Callable[[Tensor], Tensor]
    beta: float = 0.5
    scale: float = 10.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, 0, open_low=True)
        check_number("scale", self.scale, 0, open_low=True)

    def __call__(self, logits: Tensor, canvases: Canvases) -> Tensor:
        with torch.no_grad():
            usual = self.reference(canvases.noisy)
        reward = self.reward(canvases.clean)
        check_shape("reward", reward, (len(logits),), "one a sequence")
        clean, masked = canvases.clean, canvases.masked
        length = torch.full((len(clean),), clean.shape[1], device=clean.device)
        own, other = (likelihood_bound(each, clean, masked, length) for each in (logits, usual))
        return self.divergence(self.beta * (own - other), reward)

    def divergence(self, ratio: Tensor, reward: Tensor) -> Tensor:
        """KL( softmax(s·r) ‖ softmax(g) ) of g [B] and r [B]."""
        wanted = (self.scale * reward.double()).log_softmax(0)
        return (wanted.exp() * (wanted - ratio.double().log_softmax(0))).sum()
