"""Finite laws, and the exact Soft-BoN law against a sum over multisets, simulation and limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprm.theory.laws import arrays, entropy, kl, miss_probability, soft_bon_law, total_variation

from .brute import soft_bon


@given(seed=st.integers(0, 1000), n=st.integers(2, 4), draws=st.integers(1, 8), beta=st.floats(0.1, 20.0))
@settings(max_examples=40, deadline=None)
def test_the_integral_equals_the_sum_over_shortlists(seed, n, draws, beta):
    rng = np.random.default_rng(seed)
    q, weight = rng.dirichlet(np.ones(n)), np.exp(beta * rng.random(n))
    np.testing.assert_allclose(soft_bon_law(q, weight, draws), soft_bon(q, weight, draws), rtol=1e-9)


def test_one_draw_is_the_proposal_and_many_draws_approach_the_tilt():
    q, weight = np.array([0.7, 0.2, 0.1]), np.exp([0.0, 1.0, 2.0])
    np.testing.assert_allclose(soft_bon_law(q, weight, 1), q)
    np.testing.assert_allclose(soft_bon_law(q, weight, 20_000), q * weight / (q @ weight), atol=1e-4)


def test_law_matches_simulated_shortlists():
    rng = np.random.default_rng(0)
    q, weight, draws = np.array([0.5, 0.3, 0.2]), np.array([1.0, 3.0, 6.0]), 4
    counts = rng.multinomial(draws, q, size=40_000)
    mixture = counts * weight / (counts @ weight)[:, None]
    np.testing.assert_allclose(mixture.mean(0), soft_bon_law(q, weight, draws), atol=0.01)


def test_miss_probability_of_two_candidates():
    assert miss_probability(np.array([0.5, 0.5]), 3) == pytest.approx(2 * 0.5**3)


def test_miss_probability_is_certain_with_fewer_draws_than_candidates():
    assert miss_probability(np.array([0.2, 0.3, 0.5]), 2) == pytest.approx(1.0)


def test_zero_draws_are_refused():
    with pytest.raises(ValueError, match="got 0"):
        soft_bon_law(np.array([1.0]), np.array([1.0]), 0)


def test_divergences_of_a_fair_and_a_certain_coin():
    fair, certain = arrays({"heads": 0.5, "tails": 0.5}, {"heads": 1.0})
    assert kl(certain, fair) == pytest.approx(np.log(2))
    assert kl(fair, certain) == np.inf
    assert total_variation(fair, certain) == 0.5
    assert (entropy(fair), entropy(certain)) == (pytest.approx(np.log(2)), 0.0)
