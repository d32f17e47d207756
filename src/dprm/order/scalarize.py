"""Several declared benefits to one terminal reward, with the range that reward really has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dprm.order.checks import check_bounds, check_number


class Scalarized(NamedTuple):
    """A terminal reward [B] and the (lowest, highest) value it can take, for `Order(reward_range=…)`."""

    reward: Tensor
    reward_range: tuple[float, float]


def scalarize(
    benefits: Tensor, weights: Sequence[float], kind: str = "weighted", mu: float = 0.05, rho: float = 0.05
) -> Scalarized:
    """Scalarise benefits y_j ∈ [0, 1] under a declared preference λ (λ_j ≥ 0, Σ λ_j = 1).

        weighted       R = Σ_j λ_j y_j
        tchebycheff    R = 1 − μ log Σ_j exp(λ_j (1 − y_j)/μ) + ρ Σ_j λ_j y_j

    The weighted sum lets one benefit pay for another; the smooth Tchebycheff form controls the largest weighted
    shortfall. Both rise in every y_j, so the range is what they give at y = 0 and at y = 1.

    Args:
        benefits: [B,J], each in [0, 1], larger is better.
        weights: J preferences.
        mu: smoothing μ > 0; as μ → 0 the Tchebycheff reward itself.
        rho: ρ ≥ 0, favours the larger average at ties.
    """
    if benefits.dim() != 2:
        raise ValueError(f"benefits has shape {tuple(benefits.shape)}: expected [rows, benefits]")
    check_bounds("benefits", benefits, 0.0, 1.0, "benefits are declared in [0, 1]")
    preference = torch.as_tensor(list(weights), dtype=torch.float64)
    if preference.shape != benefits.shape[1:]:
        raise ValueError(f"weights has {preference.numel()} entries for {benefits.shape[1]} benefits")
    for index, weight in enumerate(preference.tolist()):
        check_number(f"weights[{index}]", weight, 0.0, 1.0 + 1e-6)
    if abs(float(preference.sum()) - 1.0) > 1e-6:
        raise ValueError(f"weights sum to {float(preference.sum()):g}: expected 1")
    check_number("mu", mu, 0.0, open_low=True)
    check_number("rho", rho, 0.0)
    if kind not in ("weighted", "tchebycheff"):
        raise ValueError(f"kind is {kind!r}: expected 'weighted' or 'tchebycheff'")

    def reward(y: Tensor) -> Tensor:
        mean = (y * preference.to(y.device)).sum(-1)
        if kind == "weighted":
            return mean
        shortfall = preference.to(y.device) * (1.0 - y) / mu
        return 1.0 - mu * torch.logsumexp(shortfall, dim=-1) + rho * mean

    ends = reward(torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, len(preference)))
    low, high = float(ends[0]), float(ends[1])
    # The last bit of a sum must not put the best sample outside its own range.
    return Scalarized(reward(benefits.double()).clamp(low, high), (low, high))
