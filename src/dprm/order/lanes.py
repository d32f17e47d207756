"""What numpy does on a CPU in a third of torch's time, or less, in the parallel lanes of the processor."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dprm.order.checks import can_look


def rising(x: Tensor) -> Tensor:
    """The values of every row [B,L], sorted; where they stood is not known."""
    if not can_look(x):
        return x.sort(dim=1).values
    values = x.numpy().copy()
    values.sort(axis=1)
    return torch.from_numpy(values)


def exp(x: Tensor, out: Tensor) -> Tensor:
    """eˣ, into `out`."""
    if not can_look(x):
        return torch.exp(x, out=out)
    np.exp(x.numpy(), out=out.numpy())
    return out


def log(x: Tensor, out: Tensor | None = None) -> Tensor:
    """log x, into `out` if there is one, which may be x itself."""
    if not can_look(x):
        return torch.log(x, out=out)
    out = torch.empty_like(x) if out is None else out
    np.log(x.numpy(), out=out.numpy())
    return out


def first_largest(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of every row of x [n,V] the largest value and the first place where it stands; NaN is larger than all."""
    if not can_look(x):
        best, place = x.max(dim=1)
        return best, place
    place = torch.from_numpy(x.numpy().argmax(axis=1))
    return x.gather(1, place.unsqueeze(1)).squeeze(1), place
