"""Success matrices: which of n samples solve each of N problems.

Every sample has its own random stream, made of the seed, the key of its problem and its number: two models or two
orders that are compared draw from the same noise, and the batch a sample is in does not matter.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.decode.counts import CountRule
from dprm.host.host import Host, Problems
from dprm.host.rollout import batches
from dprm.order import Order
from dprm.order.checks import check_count
from dprm.order.noise import mix_rows


def copies(problems: Problems, samples: int) -> Problems:
    """Every problem `samples` times, one after the other, each copy under a key of its own."""
    check_count("samples", samples, 1)
    number = torch.arange(samples, device=problems.key.device).repeat(len(problems))
    key = mix_rows(mix_rows(problems.key.repeat_interleave(samples), 1) + number, 2)
    facts = [fact for fact in problems.facts for _ in range(samples)]
    return Problems(problems.canvas.repeat_interleave(samples, 0), key & (2**62 - 1), facts)


def success_matrix(
    host: Host,
    problems: Problems,
    order: Order,
    samples: int = 32,
    *,
    budget: int | CountRule | None = None,
    temperature: float = 1.0,
    seed: int = 0,
    rows: int = 2048,
) -> Tensor:
    """[N,n] bool on the CPU: whether a sample solves its problem.

    Args:
        budget: positions a step; None: the host's own. temperature: of the tokens.
        rows: samples decoded at a time.
    """
    asked = copies(problems, samples)
    found = batches(host, asked, order, budget=budget, temperature=temperature, seed=seed, rows=rows)
    return torch.cat([rollout.reward >= host.solved_at for _, rollout in found]).view(len(problems), samples)
