"""The decoding loop."""

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.decode import Blocks, EntropyBound, Even, Factor, HoldBack, Threshold, advance, begin
from tests.draws import RULES, seeds, taught
from tests.mock_denoiser import MASK, VOCABULARY, MockDenoiser, masked_canvas


def plain_confidence_decoding(denoiser, canvas, m):
    """The loop everybody writes, for one row at a time."""
    tokens, steps = canvas.clone(), torch.zeros_like(canvas)
    for row in range(len(canvas)):
        step = 0
        while (tokens[row] == MASK).any():
            step += 1
            p = torch.softmax(denoiser(tokens[row : row + 1])[0, :, :MASK], -1)
            best, token = p.max(-1)
            masked = (tokens[row] == MASK).nonzero().squeeze(1)
            chosen = masked[best[masked].sort(descending=True, stable=True).indices[:m]]
            tokens[row, chosen] = token[chosen]
            steps[row, chosen] = step
    return tokens, steps


@given(seed=seeds, m=st.integers(1, 4), rule=st.sampled_from(RULES))
def test_without_evidence_it_is_plain_confidence_decoding(seed, m, rule):
    denoiser, canvas = MockDenoiser(seed), masked_canvas(3, 11)
    tokens, steps = plain_confidence_decoding(denoiser, canvas, m)
    result = dprm.decode(denoiser, canvas, dprm.Order(rule=rule), mask_id=MASK, budget=m)
    assert torch.equal(result.tokens, tokens)
    assert torch.equal(result.step_map.long(), steps)
    assert not result.trace.changed.any()


def test_nfe_is_the_number_of_calls_and_rows_pay_for_what_they_needed():
    denoiser, canvas = MockDenoiser(), masked_canvas(2, 12)
    canvas[1, 5:] = 0
    result = dprm.decode(denoiser, canvas, dprm.Order(), mask_id=MASK, budget=3)
    assert denoiser.calls == result.nfe == 4
    assert result.row_nfe.tolist() == [4, 1]
    nothing = dprm.decode(denoiser, torch.zeros(2, 3, dtype=torch.int64), dprm.Order(), mask_id=MASK)
    assert nothing.nfe == 0
    assert dprm.decode(denoiser, torch.zeros(0, 3, dtype=torch.int64), dprm.Order(), mask_id=MASK).tokens.shape == (
        0,
        3,
    )


def test_finished_rows_leave_the_batch():
    denoiser, rows = MockDenoiser(), []

    def model(tokens):
        rows.append(len(tokens))
        return denoiser(tokens)

    canvas = masked_canvas(8, 12)
    canvas[2:, 4:] = 0
    result = dprm.decode(model, canvas, mask_id=MASK)
    assert rows == [8] * 2 + [2] * 8
    assert result.row_nfe.tolist() == [10] * 2 + [2] * 6


@given(
    seed=seeds,
    rule=st.sampled_from(RULES),
    signal=st.sampled_from(["confidence", "random", "uncertainty"]),
    temperature=st.sampled_from([0.0, 0.8]),
)
def test_a_row_with_its_own_seed_decodes_the_same_in_any_batch(seed, rule, signal, temperature):
    order = taught(dprm.Order(rule=rule, signal=signal, explore=True), seed)
    denoiser, canvas, row_seeds = MockDenoiser(seed), masked_canvas(5, 10), torch.arange(5) + seed

    def run(rows):
        how = {"mask_id": MASK, "budget": 2, "temperature": temperature, "seed": row_seeds[rows]}
        return dprm.decode(denoiser, canvas[rows], order, **how)

    whole, alone, turned = run(torch.arange(5)), run(torch.tensor([3])), run(torch.tensor([4, 3, 0]))
    assert torch.equal(whole.tokens[3], alone.tokens[0])
    assert torch.equal(whole.step_map[[4, 3, 0]], turned.step_map)
    assert torch.equal(whole.tokens[[4, 3, 0]], turned.tokens)


@pytest.mark.parametrize(
    "how",
    [
        {"budget": 1},
        {"budget": Even(4)},
        {"budget": Threshold(0.7)},
        {"budget": Factor(1.0)},
        {"budget": EntropyBound(0.5)},
        {"budget": 2, "window": Blocks(4)},
        {"budget": Even(2), "window": Blocks(3)},
        {"budget": 2, "guard": HoldBack((0, 1))},
        {"budget": 2, "window": Blocks(5), "guard": HoldBack((0, 1)), "temperature": 1.0},
    ],
)
def test_every_host_reveals_everything_and_keeps_what_was_given(how):
    canvas = masked_canvas(6, 13)
    canvas[2, 7:9] = 3
    order = taught(dprm.Order(rule="shortlist_top_m"), 1)
    result = dprm.decode(MockDenoiser(3), canvas, order, mask_id=MASK, **how)
    given_positions = canvas != MASK
    assert not (result.tokens == MASK).any()
    assert (result.tokens < VOCABULARY).all()
    assert torch.equal(result.tokens[given_positions], canvas[given_positions])
    assert torch.equal(result.step_map == 0, given_positions)
    assert result.step_map.max() == result.nfe
    rows, cells = result.trace.events()
    assert torch.equal(rows.bincount(minlength=6), (~given_positions).sum(1))
    assert (cells >= 0).all()
    assert torch.equal(torch.isnan(result.trace.confidence), given_positions)


def test_even_takes_exactly_the_steps_it_was_given():
    for steps in (1, 3, 11):
        assert (
            dprm.decode(MockDenoiser(), masked_canvas(2, 13), dprm.Order(), mask_id=MASK, budget=Even(steps)).nfe
            == steps
        )


def test_blocks_are_finished_from_left_to_right():
    result = dprm.decode(MockDenoiser(), masked_canvas(3, 14), dprm.Order(), mask_id=MASK, window=Blocks(4), budget=2)
    steps = result.step_map[:, 2:].view(3, 3, 4)
    assert (steps[:, :-1].amax(-1) < steps[:, 1:].amin(-1)).all()


def test_blocks_start_where_each_row_was_first_masked():
    canvas = torch.full((2, 8), MASK)
    canvas[0, :2], canvas[1, :4] = 0, 0
    result = dprm.decode(MockDenoiser(), canvas, dprm.Order(), mask_id=MASK, window=Blocks(3), budget=3)
    assert result.step_map[0].tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    assert result.step_map[1].tolist() == [0, 0, 0, 0, 1, 1, 1, 2]


def test_held_back_tokens_come_last():
    def denoiser(tokens):  # Position 2 is sure of the end token 0; the others are less sure of others.
        logits = torch.zeros(*tokens.shape, VOCABULARY)
        logits[..., 1] = 2.0
        logits[:, 2, 0] = 9.0
        return logits

    canvas = torch.full((1, 4), MASK)
    free = dprm.decode(denoiser, canvas, dprm.Order(), mask_id=MASK)
    held = dprm.decode(denoiser, canvas, dprm.Order(), mask_id=MASK, guard=HoldBack((0,)))
    assert free.step_map[0, 2] == 1
    assert held.step_map[0, 2] == 4
    pair = dprm.decode(denoiser, canvas, dprm.Order(), mask_id=MASK, guard=HoldBack((0,)), budget=2)
    assert pair.nfe == 2  # The budget is met: the end token fills the last step.


def test_the_mask_is_never_revealed_even_if_the_model_prefers_it():
    def denoiser(tokens):
        logits = torch.zeros(*tokens.shape, VOCABULARY)
        logits[..., MASK] = 30.0
        return logits

    for temperature in (0.0, 1.0):
        result = dprm.decode(denoiser, masked_canvas(2, 6), dprm.Order(), mask_id=MASK, temperature=temperature)
        assert not (result.tokens == MASK).any()


def test_sampled_tokens_follow_the_tempered_distribution():
    law = torch.softmax(torch.tensor([1.0, 0.0, -1.0]) / 0.5, 0)

    def denoiser(tokens):
        return torch.tensor([1.0, 0.0, -1.0, 0.0])[None, None].expand(*tokens.shape, 4)

    # Confidence order reveals likely draws first. Were values thrown again at every step, each position would try
    # until it draws its mode.
    for confidence_of in ("drawn", "mode"):
        how = {"mask_id": 3, "temperature": 0.5, "seed": 1, "confidence_of": confidence_of}
        result = dprm.decode(denoiser, torch.full((20000, 3), 3), dprm.Order(), **how)
        seen = result.tokens.view(-1).bincount(minlength=3) / 60000
        torch.testing.assert_close(seen, law, atol=0.01, rtol=0)


def test_values_change_only_when_the_canvas_does():
    proposals, canvases = [], []

    def remember(step):
        proposals.append(step.reading.tokens.clone())
        canvases.append(step.state.tokens.clone())

    canvas = masked_canvas(5, 8)
    canvas[1, 2:7] = 0  # The second row is finished after one step: its canvas stays, one of five waits in the batch.
    dprm.decode(MockDenoiser(), canvas, dprm.Order(), mask_id=MASK, temperature=2.0, on_step=remember)
    assert torch.equal(proposals[2][1], proposals[3][1])
    # A position whose neighbours did not change is offered the same value again.
    same = (canvases[0] == canvases[1]).float()
    quiet = (same * same.roll(1, 1) * same.roll(-1, 1)).bool()
    assert torch.equal(proposals[0][quiet], proposals[1][quiet])


def test_with_the_mode_as_confidence_the_order_does_not_depend_on_the_draws():
    canvas, denoiser = masked_canvas(1, 3), MockDenoiser(1)
    firsts = {"drawn": set(), "mode": set()}
    for name, first in firsts.items():
        how = {"mask_id": MASK, "temperature": 3.0, "confidence_of": name, "until": 1}
        canvas = masked_canvas(200, 9)
        canvas[:, :2] = 0
        result = dprm.decode(denoiser, canvas, dprm.Order(), **how)
        first.update(result.step_map.argmax(1).tolist())
    assert len(firsts["mode"]) == 1
    assert len(firsts["drawn"]) > 1
    with pytest.raises(ValueError, match="confidence_of is 'best'"):
        dprm.decode(denoiser, canvas, dprm.Order(), mask_id=MASK, confidence_of="best")


def test_bad_hosts_are_named():
    canvas = masked_canvas(2, 5)
    with pytest.raises(ValueError, match=r"the model gave \(2, 4\) positions for canvases \(2, 5\)"):
        dprm.decode(lambda tokens: torch.zeros(2, 4, 7), canvas, dprm.Order(), mask_id=MASK)

    def broken(tokens):
        logits = torch.zeros(2, 5, 7)
        logits[1, 4, 2] = torch.nan
        return logits

    with pytest.raises(ValueError, match=r"logits\[row 1, position 4, token 2\] is nan"):
        dprm.decode(broken, canvas, dprm.Order(), mask_id=MASK)
    with pytest.raises(ValueError, match="temperature is -1"):
        dprm.decode(MockDenoiser(), canvas, dprm.Order(), mask_id=MASK, temperature=-1)
    with pytest.raises(ValueError, match="canvas is"):
        dprm.decode(MockDenoiser(), canvas[0], dprm.Order(), mask_id=MASK)
    with pytest.raises(ValueError, match="budget is 0"):
        dprm.decode(MockDenoiser(), canvas, dprm.Order(), mask_id=MASK, budget=0)


def test_where_values_cannot_be_looked_at_broken_logits_are_found_at_the_end(monkeypatch):
    for module in ("order.reading", "order.choice", "order.checks", "decode.loop"):
        monkeypatch.setattr(sys.modules[f"dprm.{module}"], "can_look", lambda tensor: False)

    def broken(tokens):
        logits = torch.zeros(2, 5, 7)
        logits[1, 4, 2] = torch.nan
        return logits

    with pytest.raises(ValueError, match=r"NaN or infinite logits at \[row 1, position 4\]"):
        dprm.decode(broken, masked_canvas(2, 5), dprm.Order(), mask_id=MASK)


def test_trace_and_choices_credit_the_same_cells():
    order, choices = dprm.Order(rule="soft_bon", explore=True), []
    how = {"mask_id": MASK, "budget": 2, "on_step": lambda step: choices.append(step.choice)}
    result = dprm.decode(MockDenoiser(), masked_canvas(4, 9), order, **how)
    reward = torch.rand(4)
    by_trace, by_choices = dprm.Order(), dprm.Order()
    by_trace.observe(result.trace, reward)
    by_choices.observe(choices, reward)
    assert by_trace.stats == by_choices.stats


def test_aux_may_depend_on_the_canvas():
    def visible_neighbours(canvas, reading):
        seen = (canvas != MASK).long()
        return seen.roll(1, 1) + seen.roll(-1, 1)

    order = dprm.Order(aux=3)
    result = dprm.decode(MockDenoiser(), masked_canvas(4, 9), order, mask_id=MASK, aux=visible_neighbours)
    order.observe(result.trace, torch.rand(4))
    used = order.stats.count.view(-1, 3).sum(0)
    assert (used > 0).sum() >= 2


def test_with_the_mode_as_confidence_guards_still_look_at_what_would_be_revealed():
    ends, how = [], {"mask_id": MASK, "temperature": 1.0, "confidence_of": "mode", "guard": HoldBack((0,))}

    def keep(step):
        predicted = step.reading.tokens
        others = (step.state.tokens == MASK) & (predicted != 0)
        ends.append((step.choice.mask & (predicted == 0) & others.any(1, keepdim=True)).any())

    result = dprm.decode(MockDenoiser(0, sharpness=0.3), masked_canvas(50, 9), dprm.Order(), on_step=keep, **how)
    assert (result.tokens[:, 2:] == 0).any()
    assert not any(ends)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"order": "confidence"}, "order is 'confidence': expected a dprm.Order"),
        ({"mask_id": None}, "mask_id is None: expected a whole number"),
        ({"forbid": (-1,)}, "forbid is -1"),
        ({"forbid": (99,)}, "forbid is 99: outside the vocabulary of 7"),
        ({"forbid": (0, 99), "temperature": 1.0}, "forbid is 99: outside the vocabulary of 7"),
        ({"model": lambda tokens: {"logits": tokens}}, "the model gave dict: expected logits"),
    ],
)
def test_what_is_no_argument_is_named(argument, message):
    given = {"model": MockDenoiser(), "canvas": masked_canvas(2, 6), "order": None, "mask_id": MASK, **argument}
    with pytest.raises((TypeError, ValueError), match=message):
        dprm.decode(**given)


def test_an_order_with_states_needs_a_host_with_as_many():
    order, canvas = taught(dprm.Order(aux=3), 1), masked_canvas(2, 6)
    with pytest.raises(ValueError, match="this order has aux = 3 states and the host none"):
        dprm.decode(MockDenoiser(), canvas, order, mask_id=MASK)
    host = dprm.Decoding(mask_id=MASK, states=2, state_of=lambda canvas, reading: torch.zeros_like(canvas))
    with pytest.raises(ValueError, match="this order has aux = 3 states and the host 2"):
        advance(MockDenoiser(), begin(canvas, host), order, host)
    dprm.decode(MockDenoiser(), canvas, order, mask_id=MASK, aux=torch.full((2, 6), 2))


@pytest.mark.parametrize("count", [Threshold(0.6), Factor(1.2), EntropyBound(0.5)])
def test_what_is_held_back_does_not_count(count):
    """Beside the one position that every step reveals, nothing is revealed that the rule would not reveal."""
    guard, several = HoldBack((0, 1, 2)), 0

    def look(step):
        nonlocal several
        free = guard.candidates(step.reading, step.eligible)
        budget = count(step.reading, free, step.state.step)
        several += int((budget > 1).sum())
        assert torch.equal(step.choice.mask.sum(1), budget.clamp(min=1))
        assert not (step.choice.mask & ~free).any()

    canvas = masked_canvas(8, 24)
    dprm.decode(MockDenoiser(sharpness=0.8), canvas, mask_id=MASK, budget=count, guard=guard, on_step=look)
    assert several > 0


def test_a_loop_of_ones_own_ends_with_the_same_guard():
    model, guard, tokens = MockDenoiser(), HoldBack((0, 1)), masked_canvas(4, 10)
    expected = dprm.decode(model, tokens, mask_id=MASK, guard=guard).tokens
    for _ in range(8):
        masked = tokens == MASK
        reading = dprm.read(model(tokens), forbid=MASK)
        choice = dprm.Order().select(reading, guard.candidates(reading, masked), 1, 0.5)
        tokens = torch.where(choice.mask, reading.tokens, tokens)
    assert torch.equal(tokens, expected)
