"""One reference decoding loop for reveal-only, block-wise and remasking hosts.

The host owns the denoiser, the token values, the count, the window, what may be revoked and what is guarded; the order
chooses positions. Nothing in a step looks at a value on an accelerator unless the host's own count does.
Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dprm.decode.counts import CountRule, Fixed, resolve_count
from dprm.decode.guards import HoldBack
from dprm.decode.revoke import Revoke
from dprm.decode.state import State
from dprm.decode.trace import Trace
from dprm.decode.windows import Window
from dprm.order import Choice, Order, Reading, read
from dprm.order.checks import can_look, check_integer, check_number
from dprm.order.noise import TOKEN, Stream, mix_rows

Denoiser = Callable[[Tensor], Tensor]
Aux = Tensor | Callable[[State, Reading], Tensor]
OnStep = Callable[[State, Reading, Choice], None]


@dataclass
class Result:
    """What a decoding gives.

    Attributes:
        tokens: [B,L] int64.
        step_map: [B,L] int32, the 1-based step of each reveal, 0 = given.
        trace: for `Order.observe` and for reports.
        nfe: denoiser calls made here, each for the whole batch.
        row_nfe: [B] int64, those of them that each row needed.
        state: where to go on from, for example after `fork`.
    """

    tokens: Tensor
    step_map: Tensor
    trace: Trace
    nfe: int
    row_nfe: Tensor
    state: State


@torch.no_grad()
def decode(
    denoiser: Denoiser,
    canvas: Tensor | State,
    order: Order,
    *,
    mask_id: int,
    budget: int | CountRule = 1,
    window: Window | None = None,
    guard: HoldBack | None = None,
    revoke: Revoke | None = None,
    aux: Aux | None = None,
    temperature: float = 0.0,
    confidence_of: str = "drawn",
    seed: int | Tensor = 0,
    until: int | None = None,
    on_step: OnStep | None = None,
) -> Result:
    """Decode a batch of canvases.

    Args:
        denoiser: tokens [B,L] → logits [B,L,V].
        canvas: [B,L] int64 with `mask_id` where to reveal, or a State to go on from (its seeds are kept).
        budget: positions a step, as a number or a count rule.
        window, guard, revoke: the host's objects; None: whole canvas, no guard, nothing is revoked.
        aux: the host's cell state, [B,L] or a function of (state, reading).
        temperature: 0 takes the most probable token. Otherwise every position has its own noise, drawn once, and its
            value changes only when the canvas does.
        confidence_of: with a temperature, whose clean probability the order sees: that of the "drawn" token, as most
            hosts have it, or that of the "mode", so that the order does not depend on what was drawn.
        seed: an int or [B]; with [B] a row's result does not depend on the batch it is in.
        until: stop when this many steps have been made in all, for example to fork there.
        on_step: called with (state before the step, reading, choice). Tokens that it puts on the canvas of the state
            are revealed in this step, too.
    """
    check_number("temperature", temperature, 0.0)
    if confidence_of not in ("drawn", "mode"):
        raise ValueError(f"confidence_of is {confidence_of!r}: expected 'drawn' or 'mode'")
    count = resolve_count(budget)
    state = _begin(canvas, mask_id, seed)
    total = _total_steps(count, window, revoke, state, mask_id)
    stop = min((steps for steps in (total, until) if steps is not None), default=None)
    trace = Trace(state.tokens, selected_once=revoke is None)
    row_nfe = torch.zeros_like(state.initial)
    broken = torch.zeros_like(state.given)
    calls = 0
    while stop is None or state.step < stop:
        masked = state.tokens == mask_id
        eligible = masked if revoke is None else revoke.competing(state, masked)
        if (total is None or can_look(eligible)) and not bool(eligible.any()):
            break
        if window is not None:
            eligible, number = window(state, eligible)
            state.window_step = torch.where(number == state.window, state.window_step + 1, 0)
            state.window = number
        logits = denoiser(state.tokens)
        if logits.shape[:2] != state.tokens.shape:
            raise ValueError(
                f"denoiser gave {tuple(logits.shape)} for canvases {tuple(state.tokens.shape)}: expected [B,L,V]"
            )
        calls += 1
        row_nfe += eligible.any(1)
        drawn = _draw(logits, state, mask_id, temperature) if temperature > 0 else None
        previous = state.reading if order.signal.needs_history else None
        reading = _read(logits, drawn, confidence_of, state, masked, mask_id, revoke, previous)
        state.reading = reading if order.signal.needs_history else None
        broken |= eligible & torch.isnan(reading.entropy)
        steps = state.step if window is None else state.window_step
        # Where tokens are taken back, the share of revealed positions does not say how far the decoding is.
        shown = 1.0 - masked.sum(1) / state.initial.clamp(min=1)
        progress = shown if revoke is None or total is None else state.step / total
        choice = _choose(order, state, reading, eligible, count(reading, eligible, steps), progress, guard, aux)
        if on_step is not None:
            on_step(state, reading, choice)
        trace.record(reading, choice)
        _commit(state, reading.tokens, choice, masked, mask_id, revoke, eligible, total)
    if bool(broken.any()):
        row, position = broken.nonzero()[0].tolist()
        raise ValueError(f"the denoiser gave NaN or infinite logits at [row {row}, position {position}]")
    return Result(state.tokens, state.step_map, trace, calls, row_nfe, state)


def _begin(canvas: Tensor | State, mask_id: int, seed: int | Tensor) -> State:
    if isinstance(canvas, State):
        return canvas[torch.arange(len(canvas.tokens), device=canvas.tokens.device)]
    if not isinstance(canvas, Tensor) or canvas.dim() != 2:
        raise ValueError(
            f"canvas is {getattr(canvas, 'shape', type(canvas).__name__)}: expected tokens [rows, positions]"
        )
    check_integer("canvas", canvas)
    return State.start(canvas.long(), mask_id, seed)


def _total_steps(
    count: CountRule, window: Window | None, revoke: Revoke | None, state: State, mask_id: int
) -> int | None:
    """The number of steps in all where the schedule fixes it: no step then needs to ask whether all is revealed.

    With a revoking host nothing but the schedule says when it is over.
    """
    steps = getattr(count, "steps", None)
    if revoke is not None:
        if steps is None:
            raise ValueError(f"revoke needs a budget with a fixed number of steps (Cumulative or Even), not {count}")
        return int(steps)
    if window is not None:
        return None
    if isinstance(count, Fixed):
        masked = int((state.tokens == mask_id).sum(1).max()) if len(state.tokens) else 0
        return state.step + -(-masked // count.m)
    return None if steps is None else max(int(steps), state.step + 1)


def _draw(logits: Tensor, state: State, mask_id: int, temperature: float) -> Tensor:
    """[B,L] tokens ~ softmax(logits/temperature), by the Gumbel-max trick with one set of noise a position.

    The noise stays with its position until the position is revealed: as the canvas changes, its value follows the
    logits, but is not thrown again. Fresh noise at every step, with an order that prefers likely draws, would let every
    position try until it draws its mode.
    """
    rows, length, vocabulary = logits.shape
    stream = Stream(state.seeds, 0.0, rows, logits.device)
    version = state.redrawn.repeat_interleave(vocabulary, 1)
    noise = stream.log_uniform(length * vocabulary, TOKEN, version=version).neg_().log_().neg_()
    noisy = noise.view(rows, length, vocabulary).add_(logits, alpha=1.0 / temperature)
    if mask_id < vocabulary:
        noisy[..., mask_id] = -torch.inf
    return noisy.argmax(-1)


def _read(
    logits: Tensor,
    drawn: Tensor | None,
    confidence_of: str,
    state: State,
    masked: Tensor,
    mask_id: int,
    revoke: Revoke | None,
    previous: Reading | None,
) -> Reading:
    """The reading of a step: its tokens are the canvas if all were revealed now, so what is visible keeps its token.

    Its confidence is that of the drawn token or the mode; where visible positions compete, that of their token.
    """
    mode = drawn is None or confidence_of == "mode"
    reading = read(logits, None if mode else drawn, forbid=mask_id, previous=previous)
    if revoke is not None:
        kept = torch.where(masked, reading.tokens, state.tokens)
        reading = read(logits, kept, forbid=mask_id, previous=previous)
    shown = reading.tokens if drawn is None else drawn
    return replace(reading, tokens=torch.where(masked, shown, state.tokens))


def _choose(
    order: Order,
    state: State,
    reading: Reading,
    eligible: Tensor,
    budget: int | Tensor,
    progress: float | Tensor,
    guard: HoldBack | None,
    aux: Aux | None,
) -> Choice:
    """Select, guarded positions after all others. Every row with candidates reveals at least one."""
    budget = budget.clamp(min=1) if isinstance(budget, Tensor) else max(budget, 1)
    seeds = mix_rows(state.seeds, state.step)
    states = aux(state, reading) if callable(aux) else aux
    if guard is None:
        return order.select(reading, eligible, budget, progress, states, seed=seeds)
    held = guard.held(reading, eligible)
    first = order.select(reading, eligible & ~held, budget, progress, states, seed=seeds)
    rest = budget - first.kept.sum(1)
    return first | order.select(reading, held, rest, progress, states, seed=seeds)


def _commit(
    state: State,
    tokens: Tensor,
    choice: Choice,
    masked: Tensor,
    mask_id: int,
    revoke: Revoke | None,
    eligible: Tensor,
    total: int | None,
) -> None:
    """Write the chosen tokens, take the revoked ones back, count the step."""
    revealed = choice.mask & masked
    state.step += 1
    state.tokens = torch.where(revealed, tokens, state.tokens)
    state.step_map = state.step_map.masked_fill(revealed, state.step)
    if revoke is not None:
        assert total is not None
        withdrawn = revoke.withdrawn(state, eligible, choice.mask, state.step / total)
        state.tokens = state.tokens.masked_fill(withdrawn, mask_id)
        state.step_map = state.step_map.masked_fill(withdrawn, 0)
        state.redrawn = state.redrawn + (withdrawn & ~masked)
