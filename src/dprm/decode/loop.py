"""One reference decoding loop for reveal-only, block-wise and remasking hosts.

The host owns the model, the token values, the count, the window, what may be revoked and what is guarded; the order
chooses positions. Rows that are finished leave the batch. Nothing in a step looks at a value on an accelerator unless
the host's own count does. Shapes: B rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dprm.data.underway import STEP, tell
from dprm.decode.counts import CountRule, Fixed, resolve_count
from dprm.decode.decoding import Decoding, StateOf
from dprm.decode.guards import HoldBack
from dprm.decode.hidden import Hidden, read_hidden
from dprm.decode.reader import Gumbel, Logits, Named, Reader, logits_of
from dprm.decode.revoke import Revoke
from dprm.decode.rows import Rows
from dprm.decode.state import State
from dprm.decode.trace import Trace
from dprm.decode.windows import Window
from dprm.order.checks import can_look, check_integer
from dprm.order.choice import Choice
from dprm.order.noise import mix_rows
from dprm.order.order import Order
from dprm.order.reading import Reading

Model = Callable[..., Any]
# A batch is made smaller when this share of its rows is finished: gathering rows costs a copy of them.
_FINISHED = 0.25


@dataclass
class Result:
    """What a decoding gives.

    Attributes:
        tokens: [B,L] int64.
        step_map: [B,L] int32, the 1-based step of each reveal, 0 = given.
        trace: for `Order.observe` and for reports.
        nfe: model calls made here, each for a whole batch.
        row_nfe: [B] int64, those of them that each row needed.
        state: where to go on from, for example after `fork`.
    """

    tokens: Tensor
    step_map: Tensor
    trace: Trace
    nfe: int
    row_nfe: Tensor
    state: State


@dataclass(frozen=True)
class Step:
    """One decision of a batch, as the loop hands it to `on_step` before the canvas changes.

    Attributes:
        state: before the step. eligible: [B,L] bool, what the host let the order choose from.
        reading, choice: what was seen and what was chosen; `reading.tokens` is the canvas if all were revealed now.
        progress: [B] float, how far each row is.
    """

    state: State
    eligible: Tensor
    reading: Reading
    choice: Choice
    progress: Tensor


OnStep = Callable[[Step], None]


def decode(
    model: Model,
    canvas: Tensor | State,
    order: Order | None = None,
    *,
    mask_id: int,
    budget: int | CountRule = 1,
    window: Window | None = None,
    guard: HoldBack | None = None,
    revoke: Revoke | None = None,
    aux: StateOf | Tensor | None = None,
    temperature: float = 0.0,
    top_p: float = 1.0,
    top_k: int = 0,
    confidence_of: str = "drawn",
    forbid: tuple[int, ...] = (),
    reader: Reader | None = None,
    seed: int | Tensor = 0,
    context: Rows | None = None,
    table: Tensor | None = None,
    until: int | Tensor | None = None,
    on_step: OnStep | None = None,
) -> Result:
    """Decode a batch of canvases.

    Args:
        model: tokens [B,L] → logits [B,L,V]; called with (tokens, context) where there is a context.
        canvas: [B,L] int64 with `mask_id` where to reveal, or a State to go on from (its seeds are kept).
        order: chooses positions; None: by confidence.
        budget: positions a step, as a number or a count rule.
        aux: the cell state of every position, [B,L] or a function of (canvas, reading).
        seed: an int or [B]; with [B] a row's result does not depend on the batch it is in.
        context: what else belongs to each row: a tensor, a sequence or a mapping of them, one row a canvas.
        table: [B] the table of each row, for an order that has several.
        until: stop when this many steps have been made in all, an int or [B], for example to fork there.
        on_step: called with every `Step`.

    The other arguments are those of `Decoding`; the model gives all tokens that are forbidden here.
    """
    if not isinstance(order, Order | None):
        raise TypeError(f"order is {order!r}: expected a dprm.Order, such as dprm.Order(signal='confidence')")
    if reader is None and forbid:
        reader = Named((mask_id, *forbid), top_p, top_k)
    states = 1 if order is None else order.cells.aux
    state_of = _Fixed(aux) if isinstance(aux, Tensor) else aux
    decoding = Decoding(
        mask_id=mask_id,
        forbid=forbid,
        count=resolve_count(budget),
        window=window,
        guard=guard,
        revoke=revoke,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        confidence_of=confidence_of,
        reader=reader,
        states=states if state_of is not None else 1,
        state_of=state_of,
    )
    state = canvas if isinstance(canvas, State) else begin(canvas, decoding, seed, context)
    if isinstance(aux, Tensor) and aux.shape != state.tokens.shape:
        raise ValueError(
            f"aux has shape {tuple(aux.shape)}: expected {tuple(state.tokens.shape)}, one state a position"
        )
    return advance(model, state, order or decoding.order(), decoding, table=table, until=until, on_step=on_step)


@dataclass(frozen=True)
class _Fixed:
    """A cell state that does not depend on the canvas: [B,L] int of the rows that the loop was called with."""

    states: Tensor

    def __call__(self, canvas: Tensor, reading: Reading) -> Tensor:
        return self.states


def begin(canvas: Tensor, decoding: Decoding, seed: int | Tensor = 0, context: Rows | None = None) -> State:
    """The state of canvases [B,L] before their first step."""
    if not isinstance(canvas, Tensor) or canvas.dim() != 2:
        raise ValueError(
            f"canvas is {getattr(canvas, 'shape', type(canvas).__name__)}: expected tokens [rows, positions]"
        )
    check_integer("canvas", canvas)
    return State.start(canvas.long(), decoding.mask_id, seed, context)


@torch.no_grad()
def advance(
    model: Model,
    state: State,
    order: Order,
    decoding: Decoding,
    *,
    table: Tensor | None = None,
    until: int | Tensor | None = None,
    on_step: OnStep | None = None,
) -> Result:
    """Go on from a state, to the end or until so many steps have been made in all; see `decode`."""
    if order.cells.aux > 1 and (decoding.state_of is None or order.cells.aux != decoding.states):
        states = decoding.states if decoding.state_of is not None else "none"
        raise ValueError(
            f"this order has aux = {order.cells.aux} states and the host {states}: its values mean nothing"
        )
    batch = _Batch.of(state, decoding, table, until)
    finished: list[_Batch] = []
    calls = 0
    while len(batch.state):
        over = batch.over(decoding)
        done = int(over.sum())
        if done == len(over):
            break
        if done >= _FINISHED * len(over):
            finished.append(batch[over.nonzero().flatten()])
            batch = batch[(~over).nonzero().flatten()]
            over, done = over[~over], 0
        step_of(model, order, decoding, batch, over if done else None, on_step)
        calls += 1
        tell(STEP, calls)
    finished.append(batch)
    whole = _Batch.joined(finished) if len(finished) > 1 else batch
    if bool(whole.broken.any()):
        row, position = whole.broken.nonzero()[0].tolist()
        raise ValueError(f"the model gave NaN or infinite logits at [row {row}, position {position}]")
    state = whole.state
    return Result(state.tokens, state.step_map, whole.trace, calls, whole.row_nfe, state)


@dataclass
class _Batch:
    """The rows that are decoded together, and what is known of them.

    Attributes:
        left: [B] int64 on the CPU, steps until a row is over at the latest; None where only the canvas tells.
        exact: `left` says precisely when, so that no step has to look.
        broken: [B,L] bool, where the model gave no numbers.
        place: [B] int64, where each row stands in the result.
    """

    state: State
    trace: Trace
    row_nfe: Tensor
    broken: Tensor
    place: Tensor
    left: Tensor | None
    exact: bool
    table: Tensor | None

    @classmethod
    def of(cls, state: State, decoding: Decoding, table: Tensor | None, until: int | Tensor | None) -> _Batch:
        left, exact = _steps_left(state, decoding)
        if until is not None:
            more = (until - state.step).cpu()
            left = more if left is None else torch.minimum(left, more)
            # Rows that end before wait: to know them would stop an accelerator at every step.
            exact = exact or not can_look(state.tokens)
        none = torch.zeros_like(state.initial)
        return cls(
            state=state,
            trace=Trace.start(state.tokens, selected_once=decoding.revoke is None),
            row_nfe=none,
            broken=torch.zeros_like(state.given),
            place=torch.arange(len(state), device=state.tokens.device),
            left=left,
            exact=exact,
            table=table,
        )

    def over(self, decoding: Decoding) -> Tensor:
        """[B] bool on the CPU, which rows are finished. Looks at an accelerator only where no schedule tells."""
        over = torch.zeros(len(self.state), dtype=torch.bool) if self.left is None else self.left <= 0
        if not self.exact and not bool(over.all()):
            over = over | ~competing(self.state, decoding).any(1).cpu()
        return over

    def __getitem__(self, rows: Tensor) -> _Batch:
        here = rows.to(self.place.device)
        return _Batch(
            self.state[here],
            self.trace[here],
            self.row_nfe[here],
            self.broken[here],
            self.place[here],
            None if self.left is None else self.left[rows],
            self.exact,
            None if self.table is None else self.table[here.to(self.table.device)],
        )

    @classmethod
    def joined(cls, parts: list[_Batch]) -> _Batch:
        """All rows again, in the order they came in."""
        place = torch.cat([part.place for part in parts])
        home = place.argsort()
        return cls(
            State.joined([part.state for part in parts])[home],
            Trace.joined([part.trace for part in parts])[home],
            torch.cat([part.row_nfe for part in parts])[home],
            torch.cat([part.broken for part in parts])[home],
            place[home],
            None,
            False,
            None,
        )


def _steps_left(state: State, decoding: Decoding) -> tuple[Tensor | None, bool]:
    """The steps after which each row is over, as far as the schedule tells, and whether it is never over before."""
    steps = getattr(decoding.count, "steps", None)
    if decoding.revoke is not None:
        # What is revealed may be taken back until the schedule ends.
        return (int(steps) - state.step).cpu(), not can_look(state.tokens)  # type: ignore[arg-type]
    if decoding.window is not None or decoding.together is not None:
        return None, False
    masked = (state.tokens == decoding.mask_id).sum(1).cpu()
    if isinstance(decoding.count, Fixed):
        return -(-masked // decoding.count.m), True
    if steps is None:
        return None, False
    # A row of few positions ends before its schedule does.
    return torch.where(masked > 0, (int(steps) - state.step.cpu()).clamp(min=1), 0), not can_look(state.tokens)


def competing(state: State, decoding: Decoding) -> Tensor:
    """[B,L] bool, the positions a step chooses among, of all windows; a row that has none is done."""
    masked = state.tokens == decoding.mask_id
    if decoding.revoke is not None:
        return decoding.revoke.competing(state, masked)
    ended = getattr(decoding.window, "ended", None)
    return masked if ended is None else masked & ~ended(state, masked).unsqueeze(1)


def step_of(
    model: Model,
    order: Order,
    decoding: Decoding,
    batch: _Batch,
    over: Tensor | None,
    on_step: OnStep | None,
) -> None:
    """One step of a batch; rows that are over wait."""
    state, revoke = batch.state, decoding.revoke
    masked = state.tokens == decoding.mask_id
    eligible = competing(state, decoding)
    if over is not None:
        eligible = eligible & ~over.to(eligible.device, non_blocking=True).unsqueeze(1)
    active = eligible.any(1)
    if decoding.window is not None:
        eligible, number = decoding.window(state, eligible)
        entered = torch.where(number == state.window, state.window_step + 1, 0)
        # A row that waits stays where it is.
        number, entered = torch.where(active, number, state.window), torch.where(active, entered, state.window_step)
        state = replace(state, window=number, window_step=entered)
    output = model(state.tokens) if state.context is None else model(state.tokens, state.context)
    # Outside of the window only others than the order have a use for what would be revealed.
    alone = on_step is None and decoding.state_of is None and revoke is None
    asked = eligible if alone else masked
    reading = read_canvas(output, state, masked, asked, eligible, decoding)
    batch.row_nfe = batch.row_nfe + active
    batch.broken |= eligible & torch.isnan(reading.entropy)
    # Where tokens are taken back, the share of revealed positions does not say how far the decoding is.
    shown = 1.0 - masked.sum(1) / state.initial.clamp(min=1)
    progress = shown if revoke is None else state.step / decoding.count.steps  # type: ignore[attr-defined]
    choice = _choose(order, decoding, batch, state, reading, eligible, progress)
    if on_step is not None:
        on_step(Step(state, eligible, reading, choice, progress))
    batch.trace.record(reading, choice)
    chosen = choice.mask
    if decoding.together is not None:
        chosen = chosen | (choice.candidates & (reading.confidence > decoding.together))
    batch.state = commit(state, reading.tokens, chosen, eligible, active, decoding)
    if batch.left is not None:
        batch.left = batch.left - 1


def _check_positions(given: Tensor, state: State) -> None:
    got, want = tuple(given.shape[:2]), tuple(state.tokens.shape)
    if got != want:
        raise ValueError(f"the model gave {got} positions for canvases {want}: expected [B,L,V]")


def read_canvas(
    output: Any, state: State, masked: Tensor, asked: Tensor, eligible: Tensor, decoding: Decoding
) -> Reading:
    """The reading of a step: its tokens are the canvas if all were revealed now, so what is visible keeps its token.

    Its confidence is that of the drawn token or the mode; where visible positions compete, that of their token. Of
    logits, only what is asked for or eligible is read; all numbers are 0 elsewhere.

    Args:
        masked, asked, eligible: [B,L] bool; what is asked for is masked.
    """
    reader = decoding.reader
    assert reader is not None
    drawn: Tensor | None = None
    looked: tuple[Tensor, ...] = ()
    if isinstance(output, Hidden):
        if not isinstance(reader, Logits):
            raise TypeError(f"the model gave Hidden: expected reader = Logits(…), which reads it, not {reader!r}")
        _check_positions(output.states, state)
        return read_hidden(output, reader, state, masked, asked | eligible, decoding)
    # A reader of the host's own may read something else than one list of numbers a position, or in its own way.
    if isinstance(reader, Logits) and type(reader) in (Logits, Named):
        _check_positions(logits_of(output), state)
        looked = (asked if decoding.revoke is None else asked | eligible,)
        if decoding.temperature > 0:
            noise = Gumbel(state)
            drawn, reading = reader.look(output, decoding.temperature, noise, asked, decoding.confidence_of)
        else:
            reading = reader.read(output, None, asked)
    else:
        if decoding.temperature > 0:
            drawn = reader.draw(output, decoding.temperature, Gumbel(state))
        reading = reader.read(output, drawn if decoding.confidence_of == "drawn" else None)
    _check_positions(reading.tokens, state)
    shown = reading.tokens if drawn is None else drawn
    if decoding.revoke is not None:
        reading = reader.read(output, torch.where(masked, reading.tokens, state.tokens), *looked)
    return replace(reading, tokens=torch.where(masked, shown, state.tokens))


def _choose(
    order: Order,
    decoding: Decoding,
    batch: _Batch,
    state: State,
    reading: Reading,
    eligible: Tensor,
    progress: Tensor,
) -> Choice:
    """Select, guarded positions after all others. Every row with candidates reveals at least one."""
    steps = state.step if decoding.window is None else state.window_step
    seeds = mix_rows(state.seeds, state.step)
    aux = None
    # An order with one state has no use for the host's.
    if order.cells.aux > 1 and decoding.state_of is not None:
        aux = decoding.state_of(state.tokens, reading)
        aux = aux[batch.place.to(aux.device)] if isinstance(decoding.state_of, _Fixed) else aux
    free = eligible if decoding.guard is None else decoding.guard.candidates(reading, eligible)
    # A schedule has to fit all that is eligible into its steps; other rules count what is sure enough to be revealed.
    budget = decoding.count(reading, eligible if hasattr(decoding.count, "steps") else free, steps)
    budget = budget.clamp(min=1) if isinstance(budget, Tensor) else max(budget, 1)
    choice = order.select(reading, free, budget, progress, aux, seed=seeds, table=batch.table)
    if decoding.guard is None:
        return choice
    rest = budget - choice.kept.sum(1)
    return choice | order.select(reading, eligible & ~free, rest, progress, aux, seed=seeds, table=batch.table)


def commit(state: State, tokens: Tensor, chosen: Tensor, eligible: Tensor, active: Tensor, decoding: Decoding) -> State:
    """The state after a step: the chosen tokens are written, the revoked ones taken back, the step is counted.

    Args:
        tokens: [B,L], the canvas if all were revealed now. chosen: [B,L] bool. eligible: [B,L] bool, what competed.
        active: [B] bool, the rows that make this step.
    """
    masked = state.tokens == decoding.mask_id
    revealed = chosen & masked
    step = state.step + active
    after = replace(
        state,
        step=step,
        tokens=torch.where(revealed, tokens, state.tokens),
        step_map=torch.where(revealed, step.int().unsqueeze(1), state.step_map),
    )
    if decoding.revoke is None:
        return after
    progress = step / decoding.count.steps  # type: ignore[attr-defined]
    withdrawn = decoding.revoke.withdrawn(after, eligible, chosen, progress) & active.unsqueeze(1)
    return replace(
        after,
        tokens=after.tokens.masked_fill(withdrawn, decoding.mask_id),
        step_map=after.step_map.masked_fill(withdrawn, 0),
        redrawn=after.redrawn + (withdrawn & ~masked),
    )
