"""Teach a head from branches.

    loss = mean over alternatives of (R̂_j − R̂_i − Δ_ij)²,   i the native choice, j the alternative, Δ what it made

Only differences inside a state are asked for: how easy the problem was drops out. What the head cannot know from its
sight it should leave at 0, the native choice; early stopping on other problems sees to that.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.fit.branches import Branches
from dprm.order.head import Head, HeadShape


@dataclass(frozen=True)
class Lesson:
    """How a head is taught.

    Attributes:
        epochs: at most this many. patience: epochs without a better head before it ends.
        rows: states of a step. rate: learning rate. decay: weight decay.
        judged: share of the problems that are kept for early stopping.
        seed: of the head's first weights and of the order of states.
    """

    epochs: int = 40
    patience: int = 6
    rows: int = 512
    rate: float = 2e-3
    decay: float = 0.05
    judged: float = 0.2
    seed: int = 0


@dataclass(frozen=True)
class Taught:
    """A head and how well it predicts the differences on problems it has not seen.

    Attributes:
        explained: share of their variance; 0 for a head that knows nothing. epochs: after how many it was best.
    """

    head: Head
    explained: float
    epochs: int


def teach(branches: Branches, shape: HeadShape, lesson: Lesson, device: torch.device | str = "cpu") -> Taught:
    """The head that predicts the differences of held-out problems best; a fresh one, all 0, if none does better."""
    learned, judged = branches.to(device).held_out(lesson.judged)
    head = Head(shape, lesson.seed, support=int(branches.kept.sum())).to(device)
    best, unknown = copy.deepcopy(head.state_dict()), _loss_over(head, judged, lesson.rows)
    least, best_epoch = unknown, 0
    optimiser = torch.optim.AdamW(head.parameters(), lr=lesson.rate, weight_decay=lesson.decay, betas=(0.9, 0.99))
    generator = torch.Generator().manual_seed(lesson.seed)
    step = 0
    for epoch in range(1, lesson.epochs + 1):
        shuffled = torch.randperm(len(learned), generator=generator).to(device)
        for start in range(0, len(learned), lesson.rows):
            step += 1
            optimiser.param_groups[0]["lr"] = lesson.rate * min(1.0, step / 50)
            optimiser.zero_grad()
            _loss(head, learned[shuffled[start : start + lesson.rows]]).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimiser.step()
        loss = _loss_over(head, judged, lesson.rows)
        if loss < least:
            best, least, best_epoch = copy.deepcopy(head.state_dict()), loss, epoch
        elif epoch - best_epoch >= lesson.patience:
            break
    head.load_state_dict(best)
    return Taught(head.requires_grad_(False).eval(), 1.0 - least / unknown if unknown > 0 else 0.0, best_epoch)


def _loss(head: Head, branches: Branches) -> Tensor:
    value = head(branches.sight)
    difference = value.gather(1, branches.alternative) - value.gather(1, branches.native.unsqueeze(1))
    error = torch.where(branches.kept, (difference - branches.gain).square(), 0.0)
    return error.sum() / branches.kept.sum().clamp(min=1)


@torch.no_grad()
def _loss_over(head: Head, branches: Branches, rows: int) -> float:
    """The loss over all states, in pieces."""
    total = sum(
        float(_loss(head, part)) * int(part.kept.sum())
        for part in (branches[slice(start, start + rows)] for start in range(0, len(branches), rows))
    )
    return total / max(int(branches.kept.sum()), 1)
