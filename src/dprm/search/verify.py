"""Verifiers: how likely a finished answer is right, as far as the search can know.

A verifier never sees the terminal reward. Equal answers to one question are verified once. Shapes: n answers, L
positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from dprm.decode.loop import Model
from dprm.decode.reader import logits_of
from dprm.host.host import Problems
from dprm.order import read
from dprm.order.checks import check_bounds, check_count


class Verifier(Protocol):
    """Scores answers in [0, 1]."""

    @property
    def calls(self) -> int:
        """Model calls that one answer takes."""

    def __call__(self, problems: Problems, tokens: Tensor, model: Model) -> Tensor:
        """[n] the scores of finished canvases [n,L], one a problem."""


@dataclass(frozen=True)
class VerdictSlot:
    """The host's own model is asked: the answer, then a masked slot in which it says yes or no.

    score = softmax(logit of yes, logit of no) at the slot

    Attributes:
        mask_id, yes, no: tokens.
    """

    mask_id: int
    yes: int
    no: int
    calls: ClassVar[int] = 1

    def __call__(self, problems: Problems, tokens: Tensor, model: Model) -> Tensor:
        asked = torch.cat([tokens, torch.full_like(tokens[:, :1], self.mask_id)], dim=1)
        output = model(asked) if problems.context is None else model(asked, problems.context)
        logits = logits_of(output)[:, -1, [self.yes, self.no]].float()
        return logits.softmax(-1)[:, 0]


@dataclass(frozen=True)
class Likelihood:
    """How likely the host's own model finds a finished answer: the geometric mean of its tokens' probabilities, all
    others visible. No verifier was trained for it, so it is what any host has."""

    calls: ClassVar[int] = 1

    def __call__(self, problems: Problems, tokens: Tensor, model: Model) -> Tensor:
        output = model(tokens) if problems.context is None else model(tokens, problems.context)
        confidence = read(logits_of(output), tokens).confidence
        answer = tokens != problems.canvas.to(tokens.device)
        log_p = torch.where(answer, confidence.clamp(min=1e-30).log(), 0.0)
        return (log_p.sum(1) / answer.sum(1).clamp(min=1)).exp()


@dataclass(frozen=True)
class ByFunction:
    """A function (tokens [n,L], list of facts) → [n] scores in [0, 1].

    Attributes:
        calls: model calls that one answer takes inside of it.
    """

    function: Callable[[Tensor, list[Any]], Any]
    calls: int = 0

    def __post_init__(self) -> None:
        check_count("calls", self.calls, 0)

    def __call__(self, problems: Problems, tokens: Tensor, model: Model) -> Tensor:
        return torch.as_tensor(self.function(tokens, list(problems.facts)), dtype=torch.float32, device=tokens.device)


def verified(
    verifier: Verifier, problems: Problems, question: Tensor, tokens: Tensor, model: Model
) -> tuple[Tensor, Tensor]:
    """Scores of answers, the equal ones of a question asked once.

    Args:
        problems: the questions, B. question: [n] int64, the one of each answer. tokens: [n,L].

    Returns:
        scores [n] float32, and the model calls of every question [B] int64.
    """
    answers, number = torch.unique(torch.cat([question.unsqueeze(1), tokens], dim=1), dim=0, return_inverse=True)
    asked = answers[:, 0]
    scores = verifier(problems[asked.cpu()], answers[:, 1:], model)
    if scores.shape != asked.shape:
        raise ValueError(f"the verifier gave scores {tuple(scores.shape)}: expected ({len(asked)},), one an answer")
    check_bounds("score of the verifier", scores, 0.0, 1.0, "a verifier scores in [0, 1]")
    calls = torch.bincount(asked, minlength=len(problems)) * verifier.calls
    return scores.float()[number], calls
