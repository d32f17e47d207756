"""What a policy looks at of one step of an engine: its own confidence to the bit, and its own score where it has one.

Shapes: B requests, L positions of a block, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dprm.order.noise import Stream
from dprm.order.reading import Reading, read
from dprm.order.signals import Signal

# Signals that rank positions as the engine does, by what the engine ranks by.
ALIKE = {"confidence": ("confidence", "odds"), "entropy": ("entropy",), "margin": ("margin",), "random": ("random",)}
# Signals for which the confidence of a position is enough.
OF_CONFIDENCE = ("confidence", "odds", "random")


@dataclass(frozen=True)
class Scored(Reading):
    """A reading with the engine's own log ψ [B,L]."""

    score: Tensor | None = None


class OfEngine(Signal):
    """log ψ as the engine gave it."""

    name = "engine"
    linear = False

    def value(self, reading: Reading, stream: Stream | None) -> Tensor:
        assert isinstance(reading, Scored)
        assert reading.score is not None
        return reading.score


def scored(reading: Reading, score: Tensor) -> Scored:
    """A reading with the engine's score [B,L] beside it."""
    return Scored(reading.tokens, reading.confidence, reading.margin, reading.entropy, reading.peak, score=score)


def reading_of(
    mask_id: int,
    confidence: Tensor | None,
    candidates: Tensor,
    logits: Tensor | None,
    tokens: Tensor | None,
    whole: bool,
) -> Reading:
    """What is looked at; 0 where there is no candidate.

    Args:
        confidence: [B,L], what the engine ranks by; None: the probability of the tokens. candidates: [B,L] bool.
        logits: [B,L,V]. tokens: [B,L]; None: the most probable ones. whole: whether more than confidence is looked at.

    Raises:
        ValueError: more is looked at than the engine has handed over.
    """
    if logits is None and (confidence is None or whole):
        raise ValueError("this policy looks at more than confidence: the engine has to hand over its logits")
    if confidence is None:
        assert logits is not None
        tokens = logits.argmax(-1) if tokens is None else tokens
        confidence = logits.float().softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    exact = torch.where(candidates, confidence.float(), 0.0).clamp(0.0, 1.0)
    if not whole:
        return Reading(candidates.long() if tokens is None else tokens, exact, exact, exact)
    assert logits is not None
    inside = mask_id < logits.shape[-1]
    return replace(read(logits, tokens, forbid=mask_id if inside else None), confidence=exact)
