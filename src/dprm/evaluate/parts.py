"""A comparison part by part, where a host says in which parts a problem counts, such as the format of a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import difference_interval, mean_interval
from dprm.host.host import Host, Problems
from dprm.host.rollout import Rollout


def rows_of_parts(host: Host, problems: Problems) -> dict[str, Tensor]:
    """[n] the problems of every part, in the order in which parts first come; empty where a host has none."""
    rows: dict[str, list[int]] = {}
    for row, fact in enumerate(problems.facts):
        for part in host.parts(fact):
            rows.setdefault(part, []).append(row)
    return {part: torch.tensor(rows[part]) for part in sorted(rows)}


def by_part(
    host: Host, problems: Problems, rollouts: Mapping[str, Sequence[Rollout]], reference: str, resamples: int, seed: int
) -> dict[str, Any]:
    """For a card: of every part its count, and of every arm the mean reward, its interval and that of the difference.

    Of a reward that is 0 or 1, `won` and `lost` count the problems that only the arm solves, and only the reference.

    Args:
        rollouts: by arm, one a decode seed; they are averaged problem by problem.
    """
    rewards = {name: _rewards(host, each) for name, each in rollouts.items()}
    low, high = host.reward_range
    groups, parts = problems.groups.cpu(), {}
    for part, rows in rows_of_parts(host, problems).items():
        arms: dict[str, dict[str, Any]] = {}
        for name, reward in rewards.items():
            mine, usual, group = reward[rows], rewards[reference][rows], groups[rows]
            arms[name] = dict(zip(("mean", "low", "high"), mean_interval(mine, resamples, seed=seed, groups=group)))
            if name == reference:
                continue
            change = difference_interval(mine, usual, paired=host.paired, resamples=resamples, seed=seed, groups=group)
            arms[name] |= dict(zip(("delta", "delta_low", "delta_high"), change))
            if len(rollouts[name]) == 1 and bool(((reward == low) | (reward == high)).all()):
                arms[name] |= {"won": int((mine > usual).sum()), "lost": int((mine < usual).sum())}
        parts[part] = {"count": len(rows), "arms": arms}
    return parts


def _rewards(host: Host, rollouts: Sequence[Rollout]) -> Tensor:
    """[N] float64, the mean over the decode seeds."""
    return torch.stack([host.reward(rollout.scores) for rollout in rollouts]).double().mean(0)
