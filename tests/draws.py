"""What the laws are tested on: random readings with many ties, saturated confidences, empty and full rows."""

from __future__ import annotations

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

import dprm
from dprm.order import Cells, Stats

settings.register_profile("dprm", deadline=None, max_examples=60, print_blob=True)
settings.load_profile("dprm")

RULES = ("top_m", "shortlist_top_m", "soft_bon")
SIGNALS = tuple(dprm.order.SIGNALS)

seeds = st.integers(0, 2**31 - 1)


def logits(seed: int, rows: int, length: int, vocabulary: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Logits on a coarse grid, so that ties are common, with some saturated positions."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-4, 5, (rows, length, vocabulary), generator=generator) / 2
    sure = torch.rand(rows, length, 1, generator=generator) < 0.2
    first = torch.arange(vocabulary) == 0
    return torch.where(sure & first, torch.tensor(40.0), x).to(dtype)


def candidates(seed: int, rows: int, length: int) -> Tensor:
    """Random candidates; among several rows one is empty and one is full."""
    generator = torch.Generator().manual_seed(seed + 1)
    flags = torch.rand(rows, length, generator=generator) < 0.5
    if rows > 2:
        flags[1], flags[2] = False, True
    return flags


def taught(
    order: dprm.Order, seed: int, share: float = 1.0, reward_range: tuple[float, float] = (0.0, 1.0)
) -> dprm.Order:
    """Give an Order random evidence in about `share` of its cells."""
    generator = torch.Generator().manual_seed(seed + 2)
    cells = Cells(*order.cells.shape)
    stats = Stats(cells, order.beta, reward_range)
    cell = torch.arange(cells.count)[torch.rand(cells.count, generator=generator) < share].repeat(100)
    low, high = reward_range
    bias = torch.rand(cells.count, generator=generator)
    reward = (torch.rand(len(cell), generator=generator) + bias[cell]) / 2 * (high - low) + low
    stats.add(cell, reward)
    order.merge(stats)
    return order


def host_order(value: Tensor, flags: Tensor, budget: Tensor) -> Tensor:
    """An independent definition of the host's order: a stable sort, row by row."""
    chosen = torch.zeros_like(flags)
    for row in range(len(flags)):
        positions = flags[row].nonzero().squeeze(1)
        best = torch.sort(value[row, positions], descending=True, stable=True).indices[: int(budget[row])]
        chosen[row, positions[best]] = True
    return chosen
