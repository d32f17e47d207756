"""What the order module knows of a denoiser's output: four numbers a position, in float32 from any input type.

Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.order.checks import can_look, check_bounds, check_integer, check_shape, fail_at

# Far below any real logit, and still finite, so that 0 · (it) is 0 and not NaN.
FORBIDDEN = -1e30


@dataclass(frozen=True)
class Reading:
    """One look at a canvas.

    Attributes:
        tokens: [B,L] int64, the token each position would receive.
        confidence: [B,L] float32, p(tokens) under the clean logits (temperature 1, no noise).
        margin: [B,L] float32, p₁ − p₂, the two most probable tokens.
        entropy: [B,L] float32, H(p) in nats.
        stable: [B,L] int32 or None, for how many readings in a row the position has kept its token and its confidence;
            present when `read` was given the reading before.
    """

    tokens: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    stable: Tensor | None = None

    def __getitem__(self, rows: Any) -> Reading:
        """The reading of some rows (an index, slice, list or mask over rows, which keeps two dimensions)."""
        stable = None if self.stable is None else self.stable[rows]
        return Reading(self.tokens[rows], self.confidence[rows], self.margin[rows], self.entropy[rows], stable)


@torch.no_grad()
def read(
    logits: Tensor,
    tokens: Tensor | None = None,
    *,
    forbid: int | None = None,
    previous: Reading | None = None,
    stable_kl: float = 0.01,
) -> Reading:
    """Read logits once.

    With y = x − max x and Z = Σ eʸ: p(token) = e^{y_token}/Z, margin = (1 − second largest eʸ)/Z and
    H = log Z − Σ eʸ y / Z. Shifting by the maximum first keeps small entropies accurate.

    Args:
        logits: [B,L,V] of any floating type; read in float32.
        tokens: [B,L] tokens the host has already drawn. Default: the most probable token, the first one at a tie.
        forbid: a token that is never revealed (the mask); its probability is 0.
        previous: the reading before this one, of the same rows; gives `Reading.stable`.
        stable_kl: largest change between two readings that still counts as stable. The change is
            KL(p_t ‖ p_{t−1}) of the two-outcome distribution {token, any other}; by the data processing inequality it
            is a lower bound on the KL of the full distributions, and it needs no second copy of the vocabulary.

    Raises:
        ValueError: NaN or infinite logits, or tokens outside the vocabulary, naming the place.
    """
    if not isinstance(logits, Tensor) or logits.dim() != 3 or not logits.dtype.is_floating_point:
        got = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"logits is {got}: expected floating logits [rows, positions, vocabulary]")
    rows, length, vocabulary = logits.shape
    if vocabulary == 0:
        raise ValueError("logits has an empty vocabulary")
    x = logits.float()
    if forbid is not None and 0 <= forbid < vocabulary:
        # The mask is the last token of most vocabularies: a view then does what a copy would.
        x = x[..., :-1] if forbid == vocabulary - 1 else _without(x, forbid)
    best, argmax = x.max(dim=-1)
    y = x - best.unsqueeze(-1)
    e = y.exp()
    total = e.sum(dim=-1)
    entropy = total.log() - (e * y).sum(dim=-1) / total
    if can_look(entropy) and not bool(torch.isfinite(entropy).all()):
        want = "logits must be finite (suppress a token with `forbid` or a large negative number, not -inf)"
        fail_at("logits", logits, ~torch.isfinite(logits), want)
    if tokens is None:
        tokens, chosen = argmax, total.reciprocal()
    else:
        check_shape("tokens", tokens, (rows, length), "one token a position")
        check_integer("tokens", tokens)
        check_bounds("tokens", tokens, 0, vocabulary - 1, f"outside the vocabulary of {vocabulary}")
        tokens = tokens.long()
        # A forbidden last token was cut off: it reads as probability 0.
        inside = tokens < x.shape[-1]
        picked = e.gather(-1, tokens.clamp(max=x.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)
        chosen = picked * inside / total
    second = e.scatter_(-1, argmax.unsqueeze(-1), 0.0).amax(dim=-1)
    reading = Reading(tokens, chosen, (1.0 - second) / total, entropy.clamp_(min=0.0))
    return reading if previous is None else _with_stability(reading, previous, stable_kl)


def _without(logits: Tensor, token: int) -> Tensor:
    """A copy in which one token has no probability."""
    copied = logits.clone()
    copied[..., token] = FORBIDDEN
    return copied


def _with_stability(now: Reading, before: Reading, stable_kl: float) -> Reading:
    """Count, per position, the readings in a row over which neither the token nor its confidence moved."""
    check_shape("previous.tokens", before.tokens, tuple(now.tokens.shape), "the same rows and positions")
    p = now.confidence.clamp(1e-6, 1 - 1e-6)
    q = before.confidence.clamp(1e-6, 1 - 1e-6)
    kl = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
    same = (now.tokens == before.tokens) & (kl <= stable_kl)
    streak = torch.zeros_like(now.tokens, dtype=torch.int32) if before.stable is None else before.stable
    stable = torch.where(same, streak + 1, 0)
    return Reading(now.tokens, now.confidence, now.margin, now.entropy, stable)
