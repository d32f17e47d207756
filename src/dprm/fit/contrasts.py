"""A head from traffic: what the draws of an exploring engine did to later rewards.

    R_r − mean over r's prompt  ≈  w · Σ_t x_rt,   x_rt the contrast of step t of request r (`contrib.contrast`)

x has mean 0 on every canvas, whatever was drawn before and after. So the steps of a request do not explain each other,
and one ridge regression on the sums, its penalty chosen on other prompts, is a fair estimate of a direction; against
independent draws it comes out half as long, and only the direction is used. Shapes: R requests, F features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.fit.ridge import ridge
from dprm.order.checks import fail_at
from dprm.order.features import echoes, names
from dprm.order.head import Head

# Sums are of integers, in steps of this, so that the order of shards does not matter.
_UNIT = 2.0**-12


@dataclass
class Contrasts:
    """Sums over the steps of every request: total [R,F] int64 in units, and steps [R] int64."""

    total: Tensor
    steps: Tensor

    @classmethod
    def zero(cls, requests: int, features: int) -> Contrasts:
        """Nothing was drawn."""
        return cls(torch.zeros(requests, features, dtype=torch.int64), torch.zeros(requests, dtype=torch.int64))

    def add(self, request: Tensor, contrast: Tensor) -> None:
        """Steps [s,F] of requests [s]."""
        fail_at("contrast", contrast, ~contrast.isfinite(), "expected a number")
        self.total.index_add_(0, request, (contrast.double() / _UNIT).round().long())
        self.steps.index_add_(0, request, (contrast != 0).any(1).long())

    def __getitem__(self, rows: Tensor) -> Contrasts:
        return Contrasts(self.total[rows], self.steps[rows])

    def value(self, head: Head) -> Tensor:
        """[R] float64, what a head says of all that was drawn."""
        return self.total.double() @ head.weight.double() * _UNIT

    def head(self, reward: Tensor, group: Tensor, aux: int, counts: Tensor) -> Head:
        """The head of these requests, 0 where it would say nothing about other prompts.

        Its values are scaled so that a step's contrast has root mean square 1: guidance is then in log odds.

        Args:
            reward: [R] float64, centred. group: [R] int64, prompts. counts: [cells] int64 of what was revealed.
        """
        empty = Head.empty(aux, support=len(reward))
        if self.total.shape[1] != len(names(aux, empty.reach)):
            raise ValueError(f"contrasts have {self.total.shape[1]} features: this version of dprm has another number")
        x = (self.total.double() * _UNIT).float()
        x[:, torch.tensor(echoes(aux, empty.reach, 2))] = 0.0
        weight = ridge(x, reward, group).weight
        spread = float(((x.double() @ weight).square().sum() / self.steps.sum().clamp(min=1)).sqrt())
        weight = weight / spread if spread > 0 else weight
        return Head(weight.float(), aux, empty.reach, empty.support, counts)
