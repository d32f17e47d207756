"""What the order module knows of a denoiser's output: four numbers a position, in float32 from any input type.

Logits are read in pieces that stay in the caches of a processor, and only where it is asked for: what that takes beside
the logits does not grow with them. Shapes: B rows, L positions, V vocabulary, n positions of a piece.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dprm.order.checks import can_look, check_bounds, check_count, check_integer, check_one_of, check_shape
from dprm.order.lanes import exp, first_largest

# Far below any real logit, and still finite, so that 0 · (it) is 0 and not NaN.
FORBIDDEN = -1e30
# Logits read at a time: by every thread of a processor, and at most.
_OF_A_THREAD, _AT_MOST = 2**18, 2**21

BACKENDS = ("auto", "torch", "triton")


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


@dataclass(frozen=True)
class Noise:
    """What the draw of tokens needs, where it is a part of reading.

    Attributes:
        keys: [B] int32, the streams of the rows. versions: [B,L] int32, how often a position was drawn anew.
        width: the vocabulary that the noise is counted by. temperature: of the draw.
    """

    keys: Tensor
    versions: Tensor
    width: int
    temperature: float


@torch.no_grad()
def read(
    logits: Tensor,
    tokens: Tensor | None = None,
    eligible: Tensor | None = None,
    backend: str = "auto",
    *,
    forbid: int | Sequence[int] | None = None,
) -> Reading:
    """Read logits once.

    With y = x − max x and Z = Σ eʸ: p(token) = e^{y_token}/Z, margin = (1 − second largest eʸ)/Z and
    H = log Z − Σ eʸ y / Z. Shifting by the maximum first keeps small entropies accurate. `torch.softmax` sums Z in
    another order: its probabilities are these to some units in the last place, not bit for bit. A host that ranks by
    its own softmax to the last bit puts that into `Reading.confidence`.

    Args:
        logits: [B,L,V] of any floating type; read in float32. −inf is a probability of 0.
        tokens: [B,L] tokens the host has already drawn. Default: the most probable token, the first one at a tie.
        eligible: [B,L] bool, the positions to read; all numbers of the others are 0. Default: all positions.
        backend: "torch" in pieces; "triton" in one pass on an accelerator; "auto": triton where it can be had.
        forbid: tokens of the vocabulary that are never revealed, such as the mask; their probability is 0.

    Raises:
        ValueError: NaN or +inf, a position where every token is forbidden, or a token outside the vocabulary, naming
            the place and the value. Positions that are not eligible are not looked at.
    """
    if not isinstance(logits, Tensor) or logits.dim() != 3 or not logits.dtype.is_floating_point:
        got = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"logits is {got}: expected floating logits [rows, positions, vocabulary]")
    rows, length, vocabulary = logits.shape
    if vocabulary == 0:
        raise ValueError("logits has an empty vocabulary")
    forbidden = _tokens(forbid, vocabulary)
    if tokens is not None:
        check_shape("tokens", tokens, (rows, length), "one token a position")
        check_integer("tokens", tokens)
        check_bounds("tokens", tokens, 0, vocabulary - 1, f"outside the vocabulary of {vocabulary}")
        tokens = tokens.long()
    if eligible is not None:
        check_shape("eligible", eligible, (rows, length), "one flag a position")
        if eligible.dtype != torch.bool:
            raise TypeError(f"eligible has type {eligible.dtype}: expected bool")
    x = _cut(logits.detach(), forbidden)
    if not by_kernel(x, backend):
        return _read_in_pieces(x, tokens, eligible, forbidden)
    return checked(_kernel().read_once(x, tokens, eligible, forbidden)[0], x, forbidden)


@torch.no_grad()
def draw_and_read(
    logits: Tensor, noise: Noise, eligible: Tensor | None, forbid: Sequence[int]
) -> tuple[Reading, Reading]:
    """The reading of drawn tokens and that of the most probable ones, in one pass of a kernel; see `read`."""
    forbidden = _tokens(forbid, logits.shape[2])
    x = _cut(logits.detach(), forbidden)
    drawn, mode = _kernel().read_once(x, None, eligible, forbidden, noise)
    reading = checked(drawn, x, forbidden)
    assert reading.peak is not None
    return reading, Reading(mode, reading.peak, reading.margin, reading.entropy, reading.peak)


def by_kernel(x: Tensor, backend: str = "auto") -> bool:
    """Whether logits are read by the kernel.

    Raises:
        ValueError: "triton" where it cannot be had.
    """
    check_one_of("backend", backend, BACKENDS)
    if backend == "torch" or (backend == "auto" and not x.is_cuda):
        return False
    kernel = _kernel()
    runs = kernel is not None and (x.is_cuda or kernel.INTERPRETED)
    if backend == "triton" and not runs:
        why = f"there is no kernel for {x.device}" if kernel else "there is no triton 3.4 or newer"
        raise ValueError(f"backend is 'triton': {why}; use 'torch' or 'auto'")
    return runs


@functools.cache
def _kernel() -> Any:
    """The module with the kernels, where triton 3.4 or newer is installed; nobody else imports it."""
    try:
        return importlib.import_module("dprm.order.triton_read")
    except ImportError:
        return None


def checked(reading: Reading, x: Tensor, forbidden: list[int]) -> Reading:
    """The reading, if there were numbers everywhere; on an accelerator a look would stop it."""
    if can_look(x) and not bool(torch.isfinite(reading.entropy).all()):
        _refuse(x, int((~torch.isfinite(reading.entropy)).flatten().nonzero()[0]), forbidden)
    return reading


def _cut(x: Tensor, forbidden: list[int]) -> Tensor:
    """Logits without their last tokens, while these are forbidden: a view does what a copy would.

    The mask is the last token of most vocabularies.
    """
    vocabulary = x.shape[2]
    while forbidden and forbidden[-1] == vocabulary - 1 and vocabulary > 1:
        forbidden.pop()
        vocabulary -= 1
    return x[..., :vocabulary]


class _Sums(NamedTuple):
    """What a pass over the logits of n positions gives, from which all numbers follow. With y = x − max x:

    Attributes:
        best, argmax: [n] max x, and the first token that has it.
        total, spread: [n] Σ eʸ and Σ y eʸ. second: [n] the second largest eʸ.
        picked: [n] eʸ of the tokens that are read.
    """

    best: Tensor
    argmax: Tensor
    total: Tensor
    spread: Tensor
    second: Tensor
    picked: Tensor

    def numbers(self) -> Tensor:
        """[4,n]: confidence, margin, entropy, peak; an entropy is NaN where there are no numbers."""
        entropy = (self.total.log() - self.spread / self.total).clamp_(min=0.0)
        columns = (self.picked, 1.0 - self.second, entropy, torch.ones_like(entropy))
        numbers = torch.stack(columns)
        numbers[:2] /= self.total
        numbers[3] /= self.total
        return numbers


def _read_in_pieces(x: Tensor, tokens: Tensor | None, eligible: Tensor | None, forbidden: list[int]) -> Reading:
    rows, length, _ = x.shape
    # To know which positions are eligible would stop an accelerator: there all are read.
    number = eligible.flatten().nonzero().flatten() if eligible is not None and can_look(x) else None
    drawn = None if tokens is None else tokens.flatten()
    if drawn is not None and number is not None:
        drawn = drawn[number]
    sums = _sums(x, number, drawn, forbidden)
    token, numbers = sums.argmax if drawn is None else drawn, sums.numbers()
    if forbidden:
        numbers[2].masked_fill_(sums.best <= FORBIDDEN, torch.nan)
    if number is not None:
        token = token.new_zeros(rows * length).index_copy_(0, number, token)
        numbers = numbers.new_zeros(4, rows * length).index_copy_(1, number, numbers)
    elif eligible is not None:
        token = token * eligible.flatten()
        numbers = torch.where(eligible.flatten(), numbers, 0.0)
    return checked(Reading(token.view(rows, length), *numbers.view(4, rows, length).unbind(0)), x, forbidden)


def _sums(x: Tensor, number: Tensor | None, drawn: Tensor | None, forbidden: list[int]) -> _Sums:
    """The pass over logits x [B,L,V], piece by piece; number [n]: the positions to read, row by row; None: all."""
    rows, length, vocabulary = x.shape
    positions = rows * length if number is None else len(number)
    here = can_look(x)
    most = min(_OF_A_THREAD * torch.get_num_threads(), _AT_MOST) if here else _AT_MOST
    count = max(1, most // vocabulary)
    # Where eʸ is 0 the product y eʸ is to be 0 too, also for a logit of −inf; a processor waits until it sees one.
    bounded = not here
    # Memory for one piece, used again and again.
    room = torch.empty(2, min(count, positions), vocabulary, device=x.device)
    pieces = []
    for first in range(0, max(positions, 1), count):
        part = slice(first, min(first + count, positions))
        y, e = room[:, : part.stop - part.start].unbind(0)
        piece = logits_at(x, part if number is None else number[part])
        clear = piece
        if forbidden or piece.dtype != torch.float32:
            clear = y.copy_(piece)
            for token in forbidden:
                clear[:, token] = FORBIDDEN
        best, argmax = first_largest(clear)
        torch.sub(clear, best.unsqueeze(1), out=y)
        total = exp(y, out=e).sum(1)
        if bounded:
            y.clamp_(min=FORBIDDEN)
        spread = y.mul_(e).sum(1)
        if not bounded and not bool(torch.isfinite(spread).all()):
            bounded = True
            y.copy_(piece).sub_(best.unsqueeze(1)).clamp_(min=FORBIDDEN)
            spread = y.mul_(e).masked_fill_(e == 0, 0.0).sum(1)
        picked = torch.ones_like(total)
        if drawn is not None:
            # A forbidden last token was cut off: it reads as probability 0.
            token_of = drawn[part]
            picked = e.gather(1, token_of.clamp(max=vocabulary - 1).unsqueeze(1)).squeeze(1) * (token_of < vocabulary)
        second = e.scatter_(1, argmax.unsqueeze(1), 0.0).amax(1)
        pieces.append(_Sums(best, argmax, total, spread, second, picked))
    return pieces[0] if len(pieces) == 1 else _Sums(*(torch.cat(column) for column in zip(*pieces)))


def logits_at(x: Tensor, number: Tensor | slice) -> Tensor:
    """[n,V], the logits x [B,L,V] of some positions, numbered row by row; a view of them where that is possible."""
    length = x.shape[1]
    if len(x) == 1 or x.stride(0) == length * x.stride(1):
        return x.flatten(0, 1)[number]
    index = torch.arange(number.start, number.stop, device=x.device) if isinstance(number, slice) else number
    return x[index // length, index % length]


def portions(number: int, count: int) -> list[int]:
    """`number` in portions of `count`; the last one may be smaller."""
    return [count] * (number // count) + ([number % count] if number % count else [])


def _refuse(x: Tensor, number: int, forbidden: list[int]) -> None:
    """Say why the logits of a position cannot be read."""
    row, position = divmod(number, x.shape[1])
    logits = x[row, position].clone()
    logits[forbidden] = -torch.inf
    where = f"row {row}, position {position}"
    for token in (torch.isnan(logits) | (logits == torch.inf)).nonzero().flatten().tolist():
        raise ValueError(f"logits[{where}, token {token}] is {logits[token].item()}: logits must not be NaN or +inf")
    raise ValueError(f"logits[{where}] is -inf: every token is forbidden or −inf here: no token is left")


def _tokens(forbid: int | Sequence[int] | None, vocabulary: int) -> list[int]:
    """The forbidden tokens, in rising order."""
    listed = [] if forbid is None else list(forbid) if isinstance(forbid, Sequence) else [forbid]
    tokens = sorted({check_count("forbid", token, 0) for token in listed})
    if tokens and tokens[-1] >= vocabulary:
        remedy = "a token that the model does not give need not be forbidden"
        raise ValueError(f"forbid is {tokens[-1]}: outside the vocabulary of {vocabulary}; {remedy}")
    return tokens
