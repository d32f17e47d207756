"""Survivors by rank: metrics of a host for the answers that a search keeps besides the one it gives.

Shapes: B questions, K survivors, J metrics.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from dprm.host.host import Host, Problems
from dprm.host.metrics import HELD_OUT, Metric

Some = TypeVar("Some", bound=Host)


def rank_name(rank: int) -> str:
    """The metric of the survivor with the rank-th highest score, from 1."""
    return f"rank {rank}"


def any_name(survivors: int) -> str:
    """The metric of the best of the survivors."""
    return f"any of {survivors}"


def with_ranks(host: Some, survivors: int = 4, metric: str | None = None) -> Some:
    """The host with metrics for every rank of a search's survivors, and for the best of them; held out.

    Of ways without survivors all of them are the answer's own.

    Args:
        metric: of the host, that is shown by rank; None: its metric of success, or its first one.
    """
    names = [each.name for each in host.judged]
    shown = metric or (host.success if host.success in names else names[0])
    if shown not in names:
        raise ValueError(f"metric is {shown!r}: expected one of {', '.join(names)}")
    column = names.index(shown)
    ranges = host.judged[column].range
    ranks = [*map(rank_name, range(1, survivors + 1)), any_name(survivors)]
    other = copy.copy(host)
    other.metrics = (*host.metrics, *(Metric(name, ranges, HELD_OUT) for name in ranks))
    other.judge = partial(_judged, host, column, len(ranks))  # type: ignore[method-assign]
    return other


def _judged(host: Host, column: int, ranks: int, problems: Problems, tokens: Tensor) -> Tensor:
    scores = host.scores(problems, tokens)
    return torch.cat([scores, scores[:, column : column + 1].expand(-1, ranks)], dim=1)


def ranks_filled(host: Host, judged: Tensor, winner: Tensor) -> Tensor:
    """[B,J] scores of the winners; in the columns of ranks what the survivors of those ranks have.

    Args:
        judged: [B,K,J], every survivor by rank. winner: [B] int64, rank of the winner from 0.
    """
    scores = judged[torch.arange(len(judged)), winner].clone()
    for index, metric in enumerate(host.judged):
        for rank in range(judged.shape[1]):
            if metric.name == rank_name(rank + 1):
                scores[:, index] = judged[:, rank, index]
        if metric.name == any_name(judged.shape[1]):
            scores[:, index] = judged[:, :, index].amax(1)
    return scores
