"""Teach a head from branches.

    loss = Σ over alternatives of (R̂_j − R̂_i − Δ_ij)²,   i the native choice, j the alternative, Δ what it made

Only differences inside a state are asked for: how easy the problem was drops out. The head is linear in the features of
`order.basis`, so this is a ridge regression on their differences, with one answer and no settings: the penalty is what
other problems choose. What the features do not tell about other problems stays at 0, the native choice.

That the host's own choice is better than others on average is true, and no use: it is in the host's signal, and at a
given strength a head that is busy saying so changes little. Features that say only this get no weight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from dprm.fit.branches import Branches
from dprm.fit.ridge import ridge
from dprm.host.host import Host
from dprm.order.cells import Cells
from dprm.order.features import echoes
from dprm.order.head import Head

# States whose features are worked out at a time.
_ROWS = 1024


class Taught(NamedTuple):
    """A head and what is known of it.

    Attributes:
        head: scaled so that the differences it predicts have root mean square 1; a guidance is then in log odds.
        explained: squared correlation with the differences of problems it was not fitted on, see `ridge`.
    """

    head: Head
    explained: float


@torch.no_grad()
def teach(host: Host, branches: Branches, reach: int, device: torch.device | str = "cpu") -> Taught:
    """The linear head of these branches; one that is all 0 where nothing is learned about other problems."""
    empty = Head.empty(host.decoding.states, reach, branches.count)
    if not branches.count:
        return Taught(empty, 0.0)
    group = branches.group.unsqueeze(1).expand_as(branches.tried)[branches.tried]
    phi = _differences(empty, branches, device)
    echoing = echoes(empty.aux, reach, int(branches.sight.budget.max()))
    phi[:, torch.tensor(echoing, device=device)] = 0.0
    gain = branches.gain(host)[branches.tried]
    result = ridge(phi, gain.to(device), group.to(device))
    spread = _rms(phi.double() @ result.weight.to(phi.device))
    weight = result.weight / spread if spread > 0 else result.weight
    counts = branches.counts(Cells(aux=empty.aux))
    return Taught(replace(empty, weight=weight.float().cpu(), counts=counts), result.explained)


@torch.no_grad()
def scaled(head: Head, branches: Branches, device: torch.device | str = "cpu") -> Head:
    """The same head, scaled so that the differences it predicts for these branches have root mean square 1."""
    spread = _rms(_differences(head, branches, device).double() @ head.weight.double().to(device))
    return replace(head, weight=(head.weight.double() / spread).float()) if spread > 0 else head


def _differences(head: Head, branches: Branches, device: torch.device | str) -> Tensor:
    """[N,F]: the features of every alternative less those of the choice that it took the place of."""
    features = []
    for start in range(0, len(branches), _ROWS):
        states = branches[slice(start, start + _ROWS)].to(device)
        positions = torch.cat([states.native.unsqueeze(1), states.alternative], dim=1)
        phi = head.features(states.sight)
        near = phi.gather(1, positions.unsqueeze(2).expand(-1, -1, phi.shape[2]))
        features.append((near[:, 1:] - near[:, :1])[states.tried])
    return torch.cat(features)


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())
