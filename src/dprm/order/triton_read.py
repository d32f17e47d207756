"""`read`, and the draw of tokens, as Triton kernels: the logits are read once, and nothing of their size is written.

A program reads a part of the vocabulary of one position, tile by tile. It keeps the maximum, and lane by lane the two
largest logits, Σ eʸ and Σ y eʸ with y = x − max. When a tile has a new maximum, higher by d, the sums move there:

    Z ← Z e^{−d}        S ← (S − d Z) e^{−d}

A second kernel puts the parts of a position together in the same way. Positions that are not eligible leave at once.
The noise of a draw is worked out where it is used, from the hash of `order.noise`. NaN and +inf show in the entropy;
nothing waits for the device. Shapes: B rows, L positions, V vocabulary, P parts, n = B·L.
"""

from __future__ import annotations

import functools

import torch
import triton.knobs  # Of Triton 3.4 and newer, which this is written for.
import triton.language as tl
from torch import Tensor

from dprm.order.reading import Noise, Reading

# Logits of a tile, tiles of a part, and positions put together by a program. The parts are the same whatever the batch:
# sums that were split otherwise for another batch would differ in their last bits.
TILE, _TILES, _TOGETHER = 2048, 8, 32
# Whether the kernels are run by Triton's interpreter, on a CPU.
INTERPRETED = bool(triton.knobs.runtime.interpret)
# Below every logit that counts, and finite.
_FLOOR = tl.constexpr(-1e30)


@triton.jit
def _gumbel(place, key, version):
    """Standard Gumbel noise of places [T] int64, as `noise.Stream.log_uniform` and two logarithms give it."""
    # splitmix64 of the place, its low 32 bits.
    state = (place ^ 3) + -7046029254386353131
    state = (state ^ ((state >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    state = (state ^ ((state >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    state = state ^ ((state >> 31) & 0x1FFFFFFFF)
    x = state.to(tl.int32) ^ key ^ (version * -1640531527)
    x = x * 2146121005
    x = x ^ (x >> 15)
    x = (x + key) * -2073254261
    uniform = 0.5 + x.to(tl.float32) * (2.0**-32 * (1 - 2.0**-22))
    return -tl.log(-tl.log(uniform))


@triton.jit
def _first(flags, at, size):
    """The first place of a tile whose flag is set."""
    return tl.min(tl.where(flags, at, size), 0)


@triton.jit
def _read_parts(
    logits, row_stride, position_stride, length, vocabulary,
    eligible, forbidden, forbidden_count, keys, versions, width, coldness,
    floats, places, slots, parts, tiles,
    HAS_ELIGIBLE: tl.constexpr, DRAW: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """One part of the vocabulary of one position."""
    number = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    if HAS_ELIGIBLE:  # noqa: SIM102 (decided when the kernel is compiled)
        if tl.load(eligible + number) == 0:
            return
    row = number // length
    position = number % length
    start = logits + row * row_stride + position * position_stride
    lane = tl.arange(0, TILE)
    largest = tl.full((TILE,), float("-inf"), tl.float32)
    next_ = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    spread = tl.zeros((TILE,), tl.float32)
    best = -1e30
    argmax = 0
    if DRAW:
        key = tl.load(keys + row)
        version = tl.load(versions + number)
    loudest = float("-inf")
    drawn = 0
    x_drawn = float("-inf")
    for tile in range(tiles):
        at = (part * tiles + tile) * TILE + lane
        x = tl.load(start + at, mask=at < vocabulary, other=float("-inf")).to(tl.float32)
        for index in range(forbidden_count):
            x = tl.where(at == tl.load(forbidden + index), float("-inf"), x)
        top = tl.max(x, 0)
        if top > best:
            argmax = _first(x == top, at, vocabulary - 1)
            move = top - best
            shrink = tl.exp(-move)
            # Before the first token there is nothing to move, by however much.
            spread = (spread - move * total) * shrink
            total = total * shrink
            best = top
        next_ = tl.maximum(next_, tl.minimum(largest, x))
        largest = tl.maximum(largest, x)
        y = x - best
        e = tl.exp(y)
        total += e
        spread += tl.maximum(y, _FLOOR) * e
        if DRAW:
            noisy = x * coldness + _gumbel(position * width + at, key, version)
            loud = tl.max(noisy, 0)
            if loud > loudest:
                drawn = _first(noisy == loud, at, vocabulary - 1)
                x_drawn = tl.max(tl.where(at == drawn, x, float("-inf")), 0)
                loudest = loud
    # The second largest: of equal ones the first is the largest, and the others are as large.
    holder = _first(largest == tl.max(largest, 0), lane, TILE)
    second = tl.max(tl.maximum(tl.where(lane == holder, float("-inf"), largest), next_), 0)
    slot = number * parts + part
    tl.store(floats + slot, best)
    tl.store(floats + slots + slot, second)
    tl.store(floats + 2 * slots + slot, tl.sum(total, 0))
    tl.store(floats + 3 * slots + slot, tl.sum(spread, 0))
    tl.store(places + slot, argmax)
    if DRAW:
        tl.store(floats + 4 * slots + slot, loudest)
        tl.store(floats + 5 * slots + slot, x_drawn)
        tl.store(places + slots + slot, drawn)


@triton.jit
def _put_together(
    logits, row_stride, position_stride, length, vocabulary,
    eligible, forbidden, forbidden_count, tokens,
    floats, places, slots, parts, numbers, chosen, positions,
    HAS_ELIGIBLE: tl.constexpr, HAS_TOKENS: tl.constexpr, DRAW: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    """The numbers of some positions from those of their parts; 0 where a position is not eligible."""
    number = tl.program_id(0).to(tl.int64) * TOGETHER + tl.arange(0, TOGETHER)
    inside = number < positions
    wanted = inside
    if HAS_ELIGIBLE:
        wanted = inside & (tl.load(eligible + number, mask=inside, other=0) != 0)
    best = tl.full((TOGETHER,), -1e30, tl.float32)
    second = tl.full((TOGETHER,), float("-inf"), tl.float32)
    total = tl.zeros((TOGETHER,), tl.float32)
    spread = tl.zeros((TOGETHER,), tl.float32)
    argmax = tl.zeros((TOGETHER,), tl.int64)
    loudest = tl.full((TOGETHER,), float("-inf"), tl.float32)
    picked = tl.full((TOGETHER,), float("-inf"), tl.float32)
    token = tl.zeros((TOGETHER,), tl.int64)
    for part in range(parts):
        slot = number * parts + part
        its_best = tl.load(floats + slot, mask=wanted, other=0.0)
        its_second = tl.load(floats + slots + slot, mask=wanted, other=0.0)
        its_total = tl.load(floats + 2 * slots + slot, mask=wanted, other=0.0)
        its_spread = tl.load(floats + 3 * slots + slot, mask=wanted, other=0.0)
        higher = tl.maximum(best, its_best)
        argmax = tl.where(its_best > best, tl.load(places + slot, mask=wanted, other=0), argmax)
        second = tl.maximum(tl.minimum(best, its_best), tl.maximum(second, its_second))
        mine = best - higher
        its = its_best - higher
        spread = (spread + mine * total) * tl.exp(mine) + (its_spread + its * its_total) * tl.exp(its)
        total = total * tl.exp(mine) + its_total * tl.exp(its)
        best = higher
        if DRAW:
            loud = tl.load(floats + 4 * slots + slot, mask=wanted, other=0.0)
            louder = loud > loudest
            token = tl.where(louder, tl.load(places + slots + slot, mask=wanted, other=0), token)
            picked = tl.where(louder, tl.load(floats + 5 * slots + slot, mask=wanted, other=0.0), picked)
            loudest = tl.maximum(loudest, loud)
    if HAS_TOKENS:
        token = tl.load(tokens + number, mask=wanted, other=0)
        start = logits + (number // length) * row_stride + (number % length) * position_stride
        picked = tl.load(start + token, mask=wanted & (token < vocabulary), other=float("-inf")).to(tl.float32)
        for index in range(forbidden_count):
            picked = tl.where(token == tl.load(forbidden + index), float("-inf"), picked)
    peak = 1.0 / total
    confidence = peak
    if HAS_TOKENS or DRAW:
        confidence = tl.exp(picked - best) / total
    entropy = tl.log(total) - spread / total
    entropy = tl.where(entropy < 0.0, 0.0, entropy)
    tl.store(numbers + number, tl.where(wanted, confidence, 0.0), mask=inside)
    tl.store(numbers + positions + number, tl.where(wanted, (1.0 - tl.exp(second - best)) / total, 0.0), mask=inside)
    tl.store(numbers + 2 * positions + number, tl.where(wanted, entropy, 0.0), mask=inside)
    tl.store(numbers + 3 * positions + number, tl.where(wanted, peak, 0.0), mask=inside)
    tl.store(chosen + number, tl.where(wanted, argmax, 0), mask=inside)
    if HAS_TOKENS or DRAW:
        tl.store(chosen + positions + number, tl.where(wanted, token, 0), mask=inside)


@functools.lru_cache(maxsize=64)
def _listed(tokens: tuple[int, ...], device: torch.device) -> Tensor:
    # Filled there: a copy from here would stop the device.
    return torch.stack([torch.full((), token, dtype=torch.int64, device=device) for token in tokens])


def read_once(
    x: Tensor,
    tokens: Tensor | None,
    eligible: Tensor | None,
    forbidden: list[int],
    noise: Noise | None = None,
    tile: int = TILE,
) -> tuple[Reading, Tensor]:
    """The reading of logits x [B,L,V], and the most probable tokens [B,L].

    Args:
        tokens: [B,L] int64, given tokens to read. noise: draw the tokens to read. Neither: the most probable ones.
        eligible: [B,L] bool. forbidden: tokens without probability.
    """
    if x.stride(2) != 1:
        x = x.contiguous()
    with torch.cuda.device_of(x):
        return _launched(x, tokens, eligible, forbidden, noise, tile)


def _launched(
    x: Tensor, tokens: Tensor | None, eligible: Tensor | None, forbidden: list[int], noise: Noise | None, tile: int
) -> tuple[Reading, Tensor]:
    """`read_once`, on the device of the logits."""
    rows, length, vocabulary = x.shape
    positions, device = rows * length, x.device
    numbers = torch.empty(4, rows, length, device=device)
    chosen = torch.empty(2, rows, length, dtype=torch.int64, device=device)
    parts = triton.cdiv(vocabulary, tile * _TILES)
    floats = torch.empty(6, positions * parts, device=device)
    places = torch.empty(2, positions * parts, dtype=torch.int64, device=device)
    none = chosen  # Where an argument is not used.
    flags = none if eligible is None else eligible.contiguous().view(torch.uint8)
    listed = _listed(tuple(forbidden), device) if forbidden else none
    if positions:
        shared = (x, x.stride(0), x.stride(1), length, vocabulary, flags, listed, len(forbidden))
        drawing = (none, none, 0, 0.0)
        if noise is not None:
            drawing = (noise.keys, noise.versions.contiguous(), noise.width, 1.0 / noise.temperature)
        _read_parts[(positions, parts)](
            *shared, *drawing, floats, places, positions * parts, parts, _TILES,
            HAS_ELIGIBLE=eligible is not None, DRAW=noise is not None, TILE=tile, num_warps=8,
        )  # fmt: skip
        _put_together[(triton.cdiv(positions, _TOGETHER),)](
            *shared, none if tokens is None else tokens.contiguous(),
            floats, places, positions * parts, parts, numbers, chosen, positions,
            HAS_ELIGIBLE=eligible is not None, HAS_TOKENS=tokens is not None, DRAW=noise is not None,
            TOGETHER=_TOGETHER, num_warps=1,
        )  # fmt: skip
    taken = chosen[0] if tokens is None and noise is None else chosen[1]
    return Reading(taken, *numbers.unbind(0)), chosen[0]
