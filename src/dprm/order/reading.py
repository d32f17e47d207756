"""What the order module knows of a denoiser's output: four numbers a position, in float32 from any input type.

Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.order.checks import can_look, check_bounds, check_count, check_integer, check_shape, fail_at

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
        peak: [B,L] float32, p₁; None: `confidence`, as where tokens are the most probable ones.
    """

    tokens: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    peak: Tensor | None = None

    def __getitem__(self, rows: Any) -> Reading:
        """The reading of some rows (an index, slice, list or mask over rows, which keeps two dimensions)."""
        peak = None if self.peak is None else self.peak[rows]
        return Reading(self.tokens[rows], self.confidence[rows], self.margin[rows], self.entropy[rows], peak)


@torch.no_grad()
def read(logits: Tensor, tokens: Tensor | None = None, *, forbid: int | Sequence[int] | None = None) -> Reading:
    """Read logits once.

    With y = x − max x and Z = Σ eʸ: p(token) = e^{y_token}/Z, margin = (1 − second largest eʸ)/Z and
    H = log Z − Σ eʸ y / Z. Shifting by the maximum first keeps small entropies accurate. `torch.softmax` sums Z in
    another order: its probabilities are these to some units in the last place, not bit for bit. A host that ranks by
    its own softmax to the last bit puts that into `Reading.confidence`.

    Args:
        logits: [B,L,V] of any floating type; read in float32. −inf is a probability of 0.
        tokens: [B,L] tokens the host has already drawn. Default: the most probable token, the first one at a tie.
        forbid: tokens of the vocabulary that are never revealed, such as the mask; their probability is 0.

    Raises:
        ValueError: NaN or +inf, a position where every token is forbidden, or a token outside the vocabulary, naming
            the place and the value.
    """
    if not isinstance(logits, Tensor) or logits.dim() != 3 or not logits.dtype.is_floating_point:
        got = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"logits is {got}: expected floating logits [rows, positions, vocabulary]")
    rows, length, vocabulary = logits.shape
    if vocabulary == 0:
        raise ValueError("logits has an empty vocabulary")
    x = _without(logits.float(), _tokens(forbid, vocabulary), logits)
    best, argmax = x.max(dim=-1)
    y = x - best.unsqueeze(-1)
    e = y.exp()
    total = e.sum(dim=-1)
    # Where e is 0 the product is too, also for a logit of −inf.
    entropy = total.log() - (e * y.clamp_(min=FORBIDDEN)).sum(dim=-1) / total
    if can_look(entropy) and not bool(torch.isfinite(entropy).all()):
        fail_at("logits", logits, torch.isnan(logits) | (logits == torch.inf), "logits must not be NaN or +inf")
        fail_at("logits", best, best == -torch.inf, "every token is forbidden or −inf here: no token is left")
    if tokens is None:
        peak = total.reciprocal()
        tokens, chosen = argmax, peak
    else:
        check_shape("tokens", tokens, (rows, length), "one token a position")
        check_integer("tokens", tokens)
        check_bounds("tokens", tokens, 0, vocabulary - 1, f"outside the vocabulary of {vocabulary}")
        tokens = tokens.long()
        # A forbidden last token was cut off: it reads as probability 0.
        inside = tokens < x.shape[-1]
        picked = e.gather(-1, tokens.clamp(max=x.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)
        chosen, peak = picked * inside / total, total.reciprocal()
    second = e.scatter_(-1, argmax.unsqueeze(-1), 0.0).amax(dim=-1)
    return Reading(tokens, chosen, (1.0 - second) / total, entropy.clamp_(min=0.0), peak)


def _tokens(forbid: int | Sequence[int] | None, vocabulary: int) -> list[int]:
    """The forbidden tokens, in rising order."""
    listed = [] if forbid is None else list(forbid) if isinstance(forbid, Sequence) else [forbid]
    tokens = sorted({check_count("forbid", token, 0) for token in listed})
    if tokens and tokens[-1] >= vocabulary:
        remedy = "a token that the model does not give need not be forbidden"
        raise ValueError(f"forbid is {tokens[-1]}: outside the vocabulary of {vocabulary}; {remedy}")
    return tokens


def _without(x: Tensor, tokens: list[int], logits: Tensor) -> Tensor:
    """Logits in which some tokens have no probability."""
    vocabulary = x.shape[-1]
    # The mask is the last token of most vocabularies: a view then does what a copy would.
    while tokens and tokens[-1] == vocabulary - 1 and vocabulary > 1:
        tokens.pop()
        vocabulary -= 1
    x = x[..., :vocabulary]
    if tokens:
        x = x.clone() if x.data_ptr() == logits.data_ptr() else x
        x[..., tokens] = -torch.inf
    return x
