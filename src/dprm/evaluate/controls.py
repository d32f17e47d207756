"""A control at equal model calls: what the reference does with the calls that a costly order takes.

An order that pays for continuations, as Monte Carlo values do, must beat the best of as many reference paths. The best
path is chosen by the terminal reward, which favours the control: it is a bar, not a method.
"""

from __future__ import annotations

from dataclasses import fields

import torch

from dprm.host.rollout import Rollout


def best(rollouts: list[Rollout]) -> Rollout:
    """Problem by problem the rollout of the highest reward, the first of equals; calls and seconds of all of them."""
    if not rollouts:
        raise ValueError("rollouts is empty: expected at least one path")
    winner = torch.stack([rollout.reward for rollout in rollouts]).argmax(0)
    place = torch.arange(len(winner))
    chosen = Rollout(
        **{
            field.name: torch.stack([getattr(rollout, field.name) for rollout in rollouts])[winner, place]
            for field in fields(Rollout)
        }
    )
    chosen.nfe = torch.stack([rollout.nfe for rollout in rollouts]).sum(0)
    chosen.seconds = torch.stack([rollout.seconds for rollout in rollouts]).sum(0)
    return chosen
