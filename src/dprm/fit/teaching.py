"""Teach a head from branches.

    loss = Σ over alternatives of (R̂_j − R̂_i − Δ_ij)²,   i the native choice, j the alternative, Δ what it made

Only differences inside a state are asked for: how easy the problem was drops out. The head is linear in the features of
`order.basis`, so this is a ridge regression on their differences, with one answer and no settings: the penalty is what
other problems choose. What the features do not tell about other problems stays at 0, the native choice.

That the host's own choice is better than others on average is true, and no use: it is in the host's signal, and at a
given strength a head that is busy saying so changes little. Features that say only this get no weight.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.fit.branches import Branches
from dprm.fit.ridge import ridge
from dprm.order.basis import echoes
from dprm.order.head import Head, HeadShape

# States whose features are worked out at a time.
_ROWS = 1024


class Taught(NamedTuple):
    """A head and what is known of it.

    Attributes:
        explained: squared correlation with the differences of problems it was not fitted on, see `ridge`.
        spread: root mean square of the differences that it predicts, in units of the reward; the less evidence, the
            smaller.
    """

    head: Head
    explained: float
    spread: float


@torch.no_grad()
def teach(branches: Branches, shape: HeadShape, device: torch.device | str = "cpu") -> Taught:
    """The linear head of these branches; one that is all 0 where nothing is learned about other problems."""
    head = Head(shape, support=int(branches.kept.sum())).to(device).requires_grad_(False).eval()
    if not head.support:
        return Taught(head, 0.0, 0.0)
    group = branches.group.unsqueeze(1).expand_as(branches.kept)[branches.kept]
    phi = _differences(head, branches, device)
    phi[:, torch.tensor(echoes(shape.aux, shape.reach, int(branches.sight.budget.max())), device=device)] = 0.0
    found = ridge(phi, branches.gain[branches.kept].to(device), group.to(device))
    head.linear.weight.copy_(found.weight)
    return Taught(head, found.explained, _rms(head.linear(phi)))


@torch.no_grad()
def spread(head: Head, branches: Branches, device: torch.device | str = "cpu") -> float:
    """Root mean square of the differences that a head predicts for these branches."""
    return _rms(head.linear(_differences(head, branches, device)))


def _differences(head: Head, branches: Branches, device: torch.device | str) -> Tensor:
    """[N,F]: the features of every alternative less those of the choice that it took the place of."""
    features = []
    for start in range(0, len(branches), _ROWS):
        part = branches[slice(start, start + _ROWS)].to(device)
        places = torch.cat([part.native.unsqueeze(1), part.alternative], dim=1)
        phi = head.features(part.sight)
        near = phi.gather(1, places.unsqueeze(2).expand(-1, -1, phi.shape[2]))
        features.append((near[:, 1:] - near[:, :1])[part.kept])
    return torch.cat(features)


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())
