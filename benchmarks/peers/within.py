"""Within-state R² of learned values: how much of what a choice makes at one state its value says, on unseen problems.

At states that the host's own order visits, alternatives are tried and their gains over the native choice known (see
`fit.branching`); the native choice itself gains 0. Values and gains are centred inside their state, so that what a
state is worth drops out, and

    R² = 1 − min_a Σ (Δ − a·v)² / Σ Δ² = (Σ v·Δ)² / (Σ v² · Σ Δ²),    0 where Σ v·Δ < 0

for the best scale a ≥ 0, since a strength is chosen for every value. Shapes: S states, K alternatives, L positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.cost import Cost
from dprm.host.host import Host, Problems
from dprm.order.head import Sight
from dprm.order.noise import mix
from dprm.order.policy import Policy


def branches_of(host: Host, problems: Problems, rows: int = 64, seed: int = 0) -> tuple[Branches, Cost]:
    """Branches of the host's own order on some problems, and what they took."""
    parts, cost = [], Cost()
    for start in range(0, len(problems), rows):
        part = problems[start : start + rows]
        found, spent = Branching().collect(host, part, host.decoding.order(), host.model(), mix(seed, 31), 512)
        parts.append(found)
        cost += spent
    return Branches.joined(parts), cost


def values_of(policy: Policy, branches: Branches) -> Tensor:
    """[S,1+K] float64 the values of the native choice and of the alternatives."""
    sight: Sight = branches.sight
    if policy.head is not None:
        value = policy.head(sight).double()
    else:
        aux = sight.aux.int() if policy.cells.aux > 1 else None
        cell = policy.cells.index(policy.cells.first_of_phase(sight.progress), sight.confidence, aux).long()
        value = policy.table.value[cell]
    positions = torch.cat([branches.native.unsqueeze(1), branches.alternative], 1)
    return value.gather(1, positions)


def within_state(host: Host, policy: Policy, branches: Branches) -> float:
    """R² of a policy's values, see the module."""
    gain = torch.cat([torch.zeros(len(branches), 1), branches.gain(host)], 1).double()
    there = torch.cat([torch.ones_like(branches.tried[:, :1]), branches.tried], 1)
    value = _centred(values_of(policy, branches), there)
    gain = _centred(gain, there)
    product = float((value * gain).sum())
    power = float(value.square().sum() * gain.square().sum())
    return product**2 / power if product > 0 and power > 0 else 0.0


def _centred(values: Tensor, there: Tensor) -> Tensor:
    mean = (values * there).sum(1, keepdim=True) / there.sum(1, keepdim=True)
    return torch.where(there, values - mean, 0.0)
