"""The folded head is w · φ without φ: the same values, in a fraction of the memory, for any batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order.features import names
from dprm.order.fold import _AT_ONCE
from dprm.order.head import Head, Sight
from tests.draws import candidates, logits, seeds


def head(seed, aux=1, reach=4):
    weight = torch.randn(len(names(aux, reach)), generator=torch.Generator().manual_seed(seed))
    return Head(weight, aux, reach, support=1000)


def sight(seed, rows, length, aux=1):
    generator = torch.Generator().manual_seed(seed)
    reading, flags = dprm.read(logits(seed, rows, length, 6)), candidates(seed, rows, length)
    budget = torch.randint(0, length + 3, (rows,), generator=generator)
    state = torch.randint(0, aux, (rows, length), generator=generator)
    return Sight.of(reading, flags, budget, torch.rand(rows, generator=generator), state)


@given(
    seed=seeds,
    aux=st.sampled_from([1, 3, 24]),
    reach=st.sampled_from([0, 2, 4]),
    length=st.sampled_from([1, 7, 20, 64]),
    rows=st.integers(1, 9),
)
def test_the_folded_value_is_the_weighted_sum_of_the_features(seed, aux, reach, length, rows):
    one, seen = head(seed, aux, reach), sight(seed, rows, length, aux)
    wanted = (one.features(seen).double() @ one.weight.double()).float()
    torch.testing.assert_close(one(seen), wanted, atol=1e-5, rtol=1e-5)


@given(seed=seeds, aux=st.sampled_from([1, 3]), rows=st.integers(2, 9))
def test_a_rows_value_is_the_same_alone_to_the_last_bit(seed, aux, rows):
    one, seen = head(seed, aux), sight(seed, rows, 20, aux)
    alone = torch.cat([one(seen[row : row + 1]) for row in range(rows)])
    assert torch.equal(one(seen), alone)


def test_a_batch_that_is_worked_on_in_parts_has_the_values_of_its_rows():
    length = _AT_ONCE // 4
    one, seen = head(0), sight(0, 11, length)
    parts = torch.cat([one(seen[rows]) for rows in (slice(0, 3), slice(3, 4), slice(4, 11))])
    assert torch.equal(one(seen), parts)


@pytest.mark.parametrize("rule", ["top_m", "shortlist_top_m", "soft_bon"])
def test_the_choices_are_those_of_the_features(rule, monkeypatch):
    for seed in range(20):
        reading, flags = dprm.read(logits(seed, 12, 40, 6)), candidates(seed, 12, 40)
        order = dprm.Order(head=head(seed), signal="odds", rule=rule, guidance=2.0)
        folded = order.select(reading, flags, 3, 0.4, seed=1)
        with monkeypatch.context() as patch:
            patch.setattr(Head, "__call__", lambda self, seen: self.features(seen).double() @ self.weight.double())
            assert torch.equal(folded.mask, order.select(reading, flags, 3, 0.4, seed=1).mask)


def test_no_features_are_made_where_a_head_decides(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("features were made")

    monkeypatch.setattr(Head, "features", refuse)
    largest = 0

    class Counting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.untyped_storage().nbytes())
            return result

    reading, flags = dprm.read(logits(0, 64, 256, 6)), candidates(0, 64, 256)
    order = dprm.Order(head=head(0), signal="odds")
    with Counting():
        order.select(reading, flags, 3, 0.4)
    assert largest < 64 * 256 * 4 * 281 / 10


def test_what_stands_at_visible_positions_does_not_matter_even_if_it_is_no_number():
    seen = sight(1, 6, 20)
    other = Sight(**vars(seen))
    for name in ("confidence", "margin", "entropy"):
        setattr(other, name, torch.where(seen.candidates, getattr(seen, name), torch.nan))
    assert torch.equal(head(1)(seen), head(1)(other))
