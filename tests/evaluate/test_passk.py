"""pass@K: hand-computed values, and the laws of both estimators."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.evaluate.estimates import judged_again
from dprm.evaluate.passk import KS, mean_pass, pass_at_k, pass_table
from dprm.host.metrics import Metric
from tests.toy_host import ToyHost


class JudgedHost(ToyHost):
    """Four bits, solved where all are 1."""

    metrics = (Metric("solved"),)


def rows(*texts):
    """Success rows from text such as `0010`."""
    return torch.tensor([[sign == "1" for sign in text] for text in texts])


def test_hand_computed_values():
    success = rows("0010", "0000", "1000", "1111", "0110")
    first = pass_at_k(success, (1, 2, 4), "first")
    assert first.tolist() == [[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 1, 1]]
    unbiased = pass_at_k(success, (1, 2, 4), "unbiased")
    expected = [[1 / 4, 1 / 2, 1], [0, 0, 0], [1 / 4, 1 / 2, 1], [1, 1, 1], [1 / 2, 5 / 6, 1]]
    torch.testing.assert_close(unbiased, torch.tensor(expected, dtype=torch.float64))


def test_the_statistic_of_the_paper():
    success = torch.zeros(1, 32, dtype=torch.bool)
    success[0, 5] = True  # Solved by the sixth sample: pass@8, 16 and 32.
    assert mean_pass(success, estimator="first").tolist() == [0.5]
    assert mean_pass(success).item() == pytest.approx(sum(KS) / 32 / 6)


matrices = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=5)
)


@given(matrices)
def test_unbiased_is_the_mean_of_first_k_over_all_orders_of_the_samples(matrix):
    success = torch.tensor(matrix)
    ks = tuple(range(1, success.shape[1] + 1))
    for k in ks:
        chosen = itertools.combinations(range(success.shape[1]), k)
        mean = torch.stack([success[:, list(part)].any(1).double() for part in chosen]).mean(0)
        torch.testing.assert_close(pass_at_k(success, (k,))[:, 0], mean)


@given(matrices, st.sampled_from(["first", "unbiased"]))
def test_more_samples_never_hurt_and_all_values_are_probabilities(matrix, estimator):
    success = torch.tensor(matrix)
    values = pass_at_k(success, tuple(range(1, success.shape[1] + 1)), estimator)
    assert bool(((values >= 0) & (values <= 1)).all())
    assert bool((values.diff(dim=1) >= 0).all())
    assert torch.equal(values[:, -1], success.any(1).double())


@given(st.integers(1, 400), st.data())
def test_many_samples_agree_with_exact_binomials(samples, data):
    right = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    success = (torch.arange(samples) < right)[None]
    exact = 1 - math.comb(samples - right, k) / math.comb(samples, k)
    assert pass_at_k(success, (k,)).item() == pytest.approx(exact, abs=1e-12)


def test_both_estimators_agree_in_expectation():
    draws = torch.rand(20_000, 32, generator=torch.Generator().manual_seed(0)) < 0.1
    first, unbiased = (pass_at_k(draws, KS, estimator).mean(0) for estimator in ("first", "unbiased"))
    exact = torch.tensor([1 - 0.9**k for k in KS], dtype=torch.float64)
    torch.testing.assert_close(first, exact, rtol=0, atol=0.012)
    torch.testing.assert_close(unbiased, exact, rtol=0, atol=0.012)


def test_the_table_names_every_k_and_their_mean():
    table = pass_table(rows("0010", "1111"), (1, 2, 4))
    assert table["first"].pop("intervals") == {"1": [0.0, 1.0], "2": [0.0, 1.0], "4": [1.0, 1.0]}
    assert table["first"] == {"1": 0.5, "2": 0.5, "4": 1.0, "mean": pytest.approx(2 / 3)}
    assert table["unbiased"]["1"] == pytest.approx(0.625)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="k is 8: expected 1 … 4"):
        pass_at_k(rows("0010"), (1, 8))
    with pytest.raises(ValueError, match="estimator is 'best'"):
        pass_at_k(rows("0010"), (1,), "best")
    with pytest.raises(ValueError, match=r"success is torch.float32 \(2, 2\)"):
        pass_at_k(torch.ones(2, 2), (1,))


def test_a_comparison_with_drawn_tokens_says_pass_at_k_of_its_seeds():
    host = JudgedHost().with_decoding(temperature=1.0)
    comparison = compare(host, host.problems("test", 30), arms_of(host, ("random",)), seeds=(0, 1, 2, 3))
    table = comparison.card.notes["passk"]
    assert list(table) == ["confidence", "random"]
    solved = comparison.outcomes.scores["random"][..., 0].T > 0.5
    assert table["random"]["unbiased"] == pass_table(solved, (1, 2, 4))["unbiased"]
    over = table["random"]["mean over K"]
    assert over["mean"] == pytest.approx(table["random"]["unbiased"]["mean"])
    assert over["delta_low"] <= over["delta"] <= over["delta_high"]
    assert "delta" not in table["confidence"]["mean over K"]
    assert judged_again(comparison.card, comparison.outcomes).to_json() == comparison.card.to_json()
    # Most probable tokens are the same under every seed: there is nothing to sample.
    still = compare(JudgedHost(), host.problems("test", 4), arms_of(host, ()), seeds=(0, 1)).card
    assert "passk" not in still.notes
