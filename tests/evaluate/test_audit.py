"""The order audit: hand-made step maps with known values, and laws."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dprm
from dprm.evaluate.audit import Audit, audit, content_steps
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

# Tokens: 0 … 9 digits, 10 text, 11 the mark before the final answer, 12 EOT.
DIGITS, TEXT, MARK, EOT = tuple(range(10)), 10, 11, 12


def audited(steps, tokens=None, **options) -> Audit:
    """The audit of one row or of several; all text where no tokens are given."""
    step_map = torch.atleast_2d(torch.tensor(steps))
    written = torch.full_like(step_map, TEXT) if tokens is None else torch.atleast_2d(torch.tensor(tokens))
    return audit(step_map, written, eot=EOT, digits=DIGITS, mark=MARK, **options)


def values(found: Audit, row: int = 0) -> dict[str, float]:
    return {name: float(value[row]) for name, value in vars(found).items()}


def same(one: dict[str, float], two: dict[str, float], names=None) -> bool:
    return all(one[name] == pytest.approx(two[name], nan_ok=True) for name in names or one)


def test_left_to_right():
    found = values(audited([0, 0, 1, 2, 3, 4]))
    assert found["adjacency"] == 1
    assert found["span"] == 1 / 4
    assert found["nonlocal_rate"] == found["backfill"] == found["returns"] == 0
    assert all(math.isnan(found[name]) for name in ("step_adjacency", "step_span", "step_nonlocal"))


def test_right_to_left():
    found = values(audited([4, 3, 2, 1]))
    assert found["adjacency"] == found["backfill"] == found["returns"] == 1


def test_jumps_at_one_reveal_a_step():
    # Reveals at 0, 9, 1, 2: jumps of 9, 8, 1.
    found = values(audited([1, 3, 4, 0, 0, 0, 0, 0, 0, 2]))
    assert found["adjacency"] == pytest.approx(1 / 3)
    assert found["span"] == pytest.approx((9 + 8 + 1) / 3 / 4)
    assert found["nonlocal_rate"] == pytest.approx(2 / 3)
    assert found["backfill"] == pytest.approx(2 / 3)
    assert found["returns"] == pytest.approx(1 / 3)
    assert values(audited([1, 3, 4, 0, 0, 0, 0, 0, 0, 2], far=9))["nonlocal_rate"] == pytest.approx(1 / 3)


def test_several_reveals_a_step():
    # S_1 = {2, 3, 11}, S_2 = {0, 4}, S_3 = {12}.
    found = values(audited([2, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 1, 3]))
    # d: 2→1, 3→1, 11→8; 0→2, 4→1; 12→8 (to 4, the nearest of the step before).
    assert found["adjacency"] == pytest.approx(3 / 6)
    assert found["span"] == pytest.approx((1 + 1 + 8 + 2 + 1 + 8) / 6 / 6)
    assert found["nonlocal_rate"] == pytest.approx(2 / 6)
    # After the first step 0, 4 and 12; left of 11 are the first two.
    assert found["backfill"] == pytest.approx(2 / 3)
    assert found["step_adjacency"] == pytest.approx((1 / 2 + 0) / 2)
    assert found["step_span"] == pytest.approx((9 + 4) / 2)
    assert found["step_nonlocal"] == pytest.approx(1 / 2)
    # Centroids 16/3, 2, 12.
    assert found["returns"] == pytest.approx(1 / 2)


def test_first_and_final_number():
    #         t  5  t  #  2  4  EOT
    tokens = [10, 5, 10, 11, 2, 4, 12]
    found = values(audited([1, 3, 2, 4, 6, 5, 7], tokens))
    assert found["first_number"] == pytest.approx(2 / 5)
    assert found["final_number"] == pytest.approx(4 / 5)
    found = values(audited([1, 6, 2, 4, 3, 5, 7], tokens))
    assert found["first_number"] == found["final_number"] == pytest.approx(2 / 5)


def test_digits_that_were_given_or_that_stand_before_the_last_mark_are_not_the_final_number():
    found = values(audited([0, 1, 2, 3, 4], [7, 11, 3, 11, 10]))
    assert found["first_number"] == pytest.approx(1 / 3)
    assert math.isnan(found["final_number"])


def test_without_content_nothing_is_defined_and_the_summary_says_so():
    found = audited([[1, 2, 3], [1, 2, 3], [0, 0, 0]], [[EOT] * 3, [TEXT] * 3, [TEXT] * 3])
    assert all(math.isnan(value) for row in (0, 2) for value in values(found, row).values())
    summary = found.summary()
    assert summary["adjacency"] == (1.0, 1)
    assert summary["step_span"].rows == 0
    assert math.isnan(summary["step_span"].mean)


def test_a_single_reveal_has_no_jump_and_is_at_the_start():
    found = values(audited([0, 5, 0], [TEXT, 3, EOT]))
    assert math.isnan(found["adjacency"])
    assert found["first_number"] == 0


def test_a_missing_mark_is_allowed():
    one = torch.tensor([[1, 2]])
    assert bool(audit(one, one, eot=EOT, digits=DIGITS).final_number.isnan().all())


def test_no_rows_give_no_numbers():
    none = torch.zeros(0, 5, dtype=torch.int64)
    assert audit(none, none, eot=EOT, digits=DIGITS).summary()["span"].rows == 0


@pytest.mark.parametrize(
    ("steps", "tokens", "named"),
    [([[1, 2]], [[1, 2, 3]], r"\(1, 2\) and tokens \(1, 3\)"), ([[1, -2]], [[1, 2]], "holds -2")],
)
def test_bad_input_is_named(steps, tokens, named):
    with pytest.raises(ValueError, match=named):
        audit(torch.tensor(steps), torch.tensor(tokens), eot=EOT, digits=DIGITS)


@st.composite
def traces(draw):
    """Step maps and tokens of a few rows, with given positions, gaps between steps, and EOT anywhere."""
    rows, length = draw(st.integers(1, 4)), draw(st.integers(1, 14))
    steps = draw(st.lists(st.integers(0, 9), min_size=rows * length, max_size=rows * length))
    tokens = draw(st.lists(st.sampled_from([3, 7, TEXT, MARK, EOT]), min_size=rows * length, max_size=rows * length))
    return torch.tensor(steps).view(rows, length), torch.tensor(tokens).view(rows, length)


def measure(step_map, tokens, **options):
    return audit(step_map, tokens, eot=EOT, digits=DIGITS, mark=MARK, far=4, **options)


def equal(one: Audit, two: Audit, names=None) -> bool:
    names = names or vars(one)
    return all(torch.allclose(getattr(one, name), getattr(two, name), equal_nan=True) for name in names)


@given(traces())
@settings(max_examples=100, deadline=None)
def test_the_audit_is_that_of_its_definition(trace):
    found = measure(*trace)
    for row, (steps, tokens) in enumerate(zip(*(part.tolist() for part in trace))):
        assert same(values(found, row), defined(steps, tokens, far=4)), (steps, tokens)


def defined(steps, tokens, far):
    """The definitions, with sets."""
    kept = [i for i, step in enumerate(steps) if step and tokens[i] != EOT]
    sets = [{i for i in kept if steps[i] == step} for step in sorted({steps[i] for i in kept})]
    jumps, back = [], []
    for t, now in enumerate(sets):
        near = now | (sets[t - 1] if t else set())
        earlier = [j for before in sets[:t] for j in before]
        jumps += [min(abs(i - j) for j in near - {i}) for i in now if near - {i}]
        back += [i < max(earlier) for i in now if earlier]
    wide = [some for some in sets if len(some) > 1]
    centre = [sum(some) / len(some) for some in sets]
    last = max((i for i, token in enumerate(tokens) if token == MARK), default=len(tokens))
    timing = {}
    for name, first in (("first_number", 0), ("final_number", last)):
        when = [t for t, some in enumerate(sets) if any(tokens[i] in DIGITS and i >= first for i in some)]
        timing[name] = when[0] / max(1, len(sets) - 1) if when else math.nan
    return {
        "adjacency": mean(jump == 1 for jump in jumps),
        "span": mean(jump / len(kept) for jump in jumps),
        "nonlocal_rate": mean(jump >= far for jump in jumps),
        "backfill": mean(back),
        "step_adjacency": mean(sum(i + 1 in some for i in some) / (len(some) - 1) for some in wide),
        "step_span": mean(max(some) - min(some) for some in wide),
        "step_nonlocal": mean(max(some) - min(some) >= far for some in wide),
        "returns": mean(two < one for one, two in itertools.pairwise(centre)),
        **timing,
    }


def mean(some) -> float:
    listed = list(some)
    return sum(listed) / len(listed) if listed else math.nan


@given(traces(), st.integers(0, 6), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_padding_with_eot_changes_nothing_whenever_it_is_revealed(trace, more, rng):
    steps, tokens = trace
    shape = (len(steps), more)
    late = torch.tensor([rng.randint(0, 12) for _ in range(len(steps) * more)], dtype=torch.int64).view(shape)
    padded = measure(torch.cat([steps, late], 1), torch.cat([tokens, torch.full(shape, EOT)], 1))
    assert equal(measure(steps, tokens), padded)


@given(traces(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_a_prompt_in_front_and_other_numbers_for_the_same_order_of_steps_change_nothing(trace, prompt):
    steps, tokens = trace
    front = torch.zeros(len(steps), prompt, dtype=torch.int64)
    moved = measure(torch.cat([front, steps * steps + 3 * (steps > 0)], 1), torch.cat([front + TEXT, tokens], 1))
    assert equal(measure(steps, tokens), moved)


@given(traces())
@settings(max_examples=60, deadline=None)
def test_distances_do_not_tell_left_from_right(trace):
    names = ("adjacency", "span", "nonlocal_rate", "step_adjacency", "step_span", "step_nonlocal", "first_number")
    assert equal(measure(*trace), measure(*(part.flip(1) for part in trace)), names)


@given(traces())
@settings(max_examples=40, deadline=None)
def test_rows_are_independent_of_their_batch(trace):
    found = measure(*trace)
    order = torch.arange(len(trace[0])).flip(0)
    turned = measure(*(part[order] for part in trace), rows=1)
    assert all(same(values(found, int(place)), values(turned, row)) for row, place in enumerate(order))


@given(st.integers(2, 20), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_left_to_right_of_any_width_is_adjacent_and_never_goes_back(length, width):
    found = values(audited([1 + place // width for place in range(length)]))
    assert found["adjacency"] == 1
    assert found["span"] == pytest.approx(1 / length)
    if length > width:
        assert found["backfill"] == found["returns"] == 0


def test_steps_are_renumbered_after_eot_is_gone():
    steps = torch.tensor([[0, 2, 5, 5, 9, 7]])
    tokens = torch.tensor([[TEXT, TEXT, TEXT, EOT, 1, EOT]])
    assert content_steps(steps, tokens, EOT).tolist() == [[0, 1, 2, 0, 3, 0]]


@pytest.mark.parametrize("budget", [1, 3])
def test_a_decoding_from_left_to_right_is_seen_as_one(budget):
    result = dprm.decode(
        MockDenoiser(), masked_canvas(4, 12), dprm.Order(signal="left_to_right"), mask_id=MASK, budget=budget
    )
    found = audit(result.step_map, result.tokens, eot=MASK, digits=(0, 1)).summary()
    assert found["adjacency"] == (1.0, 4)
    assert found["backfill"] == (0.0, 4)
