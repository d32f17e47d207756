"""The branches of a search: which are kept at a prune, and what grows from them.

Shapes: B questions, W branches a question, n = B·W rows in that order, L positions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from dprm.decode.state import State
from dprm.order.noise import BRANCH, Stream, mix_rows


@dataclass(frozen=True)
class Branches:
    """All branches of all questions, question by question.

    Attributes:
        state: n rows. width: W.
        confidence: [n,L] float32, of every position when it was revealed; NaN where it was not.
        filled: [n,L] int64, the canvas if all were revealed now, as the model last saw it.
    """

    state: State
    width: int
    confidence: Tensor
    filled: Tensor

    @classmethod
    def start(cls, state: State, width: int) -> Branches:
        """`width` branches of every question; the first has the question's own random numbers."""
        forked = state.fork(width)
        number = torch.arange(len(forked), device=forked.tokens.device) % width
        seeds = torch.where(number > 0, mix_rows(forked.seeds ^ number, 1), forked.seeds)
        forked = replace(forked, seeds=seeds, row=torch.arange(len(forked), device=number.device))
        unseen = torch.full_like(forked.tokens, torch.nan, dtype=torch.float32)
        return cls(forked, width, unseen, forked.tokens)

    @property
    def question(self) -> Tensor:
        """[n] int64."""
        return torch.arange(len(self.state), device=self.filled.device) // self.width

    def ranked(self, score: Tensor) -> Tensor:
        """[B,W] int64, the rows of every question: different answers first, by falling score, ties to the left.

        Args:
            score: [n].
        """
        answers = self.filled.view(-1, self.width, self.filled.shape[1])
        same = (answers.unsqueeze(1) == answers.unsqueeze(2)).all(3)
        by_score = score.view(-1, self.width).argsort(dim=1, descending=True, stable=True)
        # A branch repeats another if one that is ranked before it says the same.
        turn = by_score.argsort(dim=1)
        before = turn.unsqueeze(1) < turn.unsqueeze(2)
        repeats = (same & before).any(2)
        order = repeats.gather(1, by_score).int().argsort(dim=1, stable=True)
        first_row = torch.arange(len(answers), device=score.device).unsqueeze(1) * self.width
        return by_score.gather(1, order) + first_row

    def grown(self, rows: Tensor, width: int, remask: int, mask_id: int) -> Branches:
        """`width` branches a question: the parents as they are, and copies in which some tokens are masked again.

        Of the 2·remask least sure tokens of a copy, or of all that it has revealed, half are drawn.

        Args:
            rows: [B,P] int64, the parents.
        """
        parents = rows.shape[1]
        number = torch.arange(width, device=rows.device)
        chosen = rows[:, number % parents].flatten()
        copied = number.repeat(len(rows)) >= parents
        state, confidence = self.state[chosen], self.confidence[chosen]
        # A copy has its own random numbers from here on: of its step, and of its turn among the copies.
        turn = (state.step * width + number.repeat(len(rows))) + 1
        seeds = torch.where(copied, mix_rows(state.seeds, turn), state.seeds)
        revealed = (state.step_map > 0) & copied.unsqueeze(1)
        unsure = torch.where(revealed, confidence, torch.inf).argsort(dim=1, stable=True).argsort(dim=1)
        pool = revealed & (unsure < 2 * remask)
        count = pool.sum(1, keepdim=True) // 2
        stream = Stream(seeds, 0.0, len(chosen), rows.device)
        lot = torch.where(pool, stream.log_uniform(pool.shape[1], BRANCH, turn=3), -torch.inf)
        drawn = pool & (lot.argsort(dim=1, descending=True, stable=True).argsort(dim=1) < count)
        state = replace(
            state,
            tokens=state.tokens.masked_fill(drawn, mask_id),
            step_map=state.step_map.masked_fill(drawn, 0),
            redrawn=state.redrawn + drawn.int(),
            seeds=seeds,
            row=torch.arange(len(chosen), device=rows.device),
        )
        return Branches(state, width, confidence.masked_fill(drawn, torch.nan), self.filled[chosen])

    def __getitem__(self, rows: Tensor) -> Branches:
        """Some of the branches of every question, rows [B,W']."""
        flat = rows.flatten()
        kept = {f.name: getattr(self, f.name)[flat] for f in fields(self) if f.name != "width"}
        return Branches(width=rows.shape[1], **kept)
