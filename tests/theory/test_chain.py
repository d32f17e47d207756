"""The chain against an independent recursion, and laws that hold for every joint."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprm.theory import Chain, myopic, null_control, random_chain
from dprm.theory.laws import total_variation

from .brute import base_value

seeds = st.integers(0, 10_000)


def random_policy(chain, seed):
    """A policy with a random law at every canvas."""
    table = np.random.default_rng(seed).random((chain.vocab + 1,) * chain.length + (64,))

    def policy(state):
        weights = table[state][: len(chain.candidates(state))]
        return weights / weights.sum()

    return policy


@pytest.mark.parametrize("tokens", ["greedy", "sampled"])
@pytest.mark.parametrize(("length", "vocab", "m"), [(2, 2, 1), (3, 2, 1), (3, 3, 1), (3, 2, 2), (4, 2, 2)])
def test_h_and_process_reward_agree_with_plain_recursion(length, vocab, m, tokens):
    chain = random_chain(3, length=length, vocab=vocab, concentration=1.0, tokens=tokens, m=m, beta=1.7)
    h, entries = base_value(chain.joint, chain.reward, chain.start, 1.7, tokens, m)
    assert chain.h(chain.start) == pytest.approx(h, rel=1e-12)
    assert chain.candidates(chain.start) == tuple(A for A, _, _ in entries)
    np.testing.assert_allclose(chain.q0(chain.start), [q for _, q, _ in entries], rtol=1e-12)
    np.testing.assert_allclose(chain.R_star(chain.start), [R for _, _, R in entries], rtol=1e-10)


@given(
    seed=seeds, tokens=st.sampled_from(["greedy", "sampled"]), m=st.integers(1, 3), noise=st.sampled_from([0.0, 0.4])
)
@settings(max_examples=25, deadline=None)
def test_every_policy_has_a_terminal_law_that_sums_to_one(seed, tokens, m, noise):
    chain = random_chain(seed, length=3, tokens=tokens, m=m, noise=noise)
    for policy in (random_policy(chain, seed), chain.q0, chain.hard, chain.soft_bon(3)):
        law = chain.terminal_law(policy)
        assert law.min() >= 0
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        assert chain.worst_order() - 1e-12 <= chain.expected_reward(policy) <= chain.best_order() + 1e-12


@given(seed=seeds, beta=st.floats(0.05, 10.0), m=st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_gibbs_order_reproduces_the_tilted_law_for_greedy_tokens(seed, beta, m):
    chain = random_chain(seed, length=4, beta=beta, m=m)
    assert total_variation(chain.terminal_law(chain.pi_star), chain.nu_beta) < 1e-10


@given(seed=seeds, beta=st.floats(0.05, 10.0))
@settings(max_examples=25, deadline=None)
def test_pi_star_is_q0_reweighted_by_the_exponential_of_the_process_reward(seed, beta):
    chain = random_chain(seed, length=3, beta=beta, tokens="sampled", noise=0.3)
    weights = chain.q0(chain.start) * np.exp(beta * chain.R_star(chain.start))
    np.testing.assert_allclose(chain.pi_star(chain.start), weights / weights.sum(), rtol=1e-10)
    assert weights.sum() == pytest.approx(chain.h(chain.start), rel=1e-10)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_no_order_gains_when_tokens_come_one_by_one_from_exact_conditionals(seed):
    chain = null_control(seed, length=3)
    for policy in (random_policy(chain, seed), chain.confidence, chain.pi_star, chain.hard):
        assert total_variation(chain.terminal_law(policy), chain.joint) < 1e-12
    assert chain.best_order() - chain.worst_order() < 1e-12
    assert np.ptp(chain.R_star(chain.start)) < 1e-12


def test_process_reward_of_a_shifted_reward_is_shifted_and_the_order_is_unchanged():
    chain = random_chain(5, length=4)
    shifted = chain.replace(reward=chain.reward + 0.5, reward_range=(0.0, 2.0))
    np.testing.assert_allclose(shifted.R_star(chain.start), chain.R_star(chain.start) + 0.5, rtol=1e-12)
    np.testing.assert_allclose(shifted.pi_star(chain.start), chain.pi_star(chain.start), rtol=1e-12)


def test_custom_base_score_replaces_confidence():
    chain = random_chain(0, length=3).replace(psi=lambda state: np.array([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(chain.q0(chain.start), np.array([1, 2, 5]) / 8)
    assert chain.confidence(chain.start).tolist() == [0, 0, 1]


def test_path_law_marginalises_to_the_terminal_law():
    chain = random_chain(2, length=3, tokens="sampled", m=2)
    law = np.zeros(chain.reward.shape)
    for path, probability in chain.path_law(chain.pi_star).items():
        law[path[-1][0]] += probability
    np.testing.assert_allclose(law, chain.terminal_law(chain.pi_star), atol=1e-14)


def test_denoiser_gives_finite_logits_whose_softmax_is_the_conditional_table():
    torch = pytest.importorskip("torch")
    chain = myopic()
    canvas = torch.tensor([[2, 2, 2, 2], [2, 1, 2, 0], [1, 1, 1, 1]])
    logits = chain.denoiser()(canvas)
    assert logits.shape == (3, 4, 2)
    assert logits.dtype == torch.float32
    assert torch.isfinite(logits).all()
    expected = np.stack([chain.conditionals[tuple(row)] for row in canvas.tolist()])
    np.testing.assert_allclose(logits.softmax(-1).numpy(), expected, atol=1e-6)
    assert chain.reward_of(torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])).tolist() == [1.0, 0.0]


JOINT = np.full((2, 2), 0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"joint": JOINT - 0.5, "reward": JOINT}, "negative entry: -0.25"),
        ({"joint": JOINT * 2, "reward": JOINT}, "sums to 2.0"),
        ({"joint": JOINT, "reward": np.zeros((3, 3))}, r"\(3, 3\).*\(2, 2\)"),
        ({"joint": JOINT, "reward": JOINT * 8}, r"it is 2.0 at x=\[0, 0\]"),
        ({"joint": JOINT, "reward": JOINT * np.nan}, "NaN"),
        ({"joint": JOINT, "reward": None}, "reward is required"),
        ({"joint": None, "reward": JOINT}, "joint or conditionals"),
        ({"joint": JOINT, "reward": JOINT, "tokens": "beam"}, "'beam'"),
        ({"joint": JOINT, "reward": JOINT, "m": 3}, "got 3"),
        ({"joint": JOINT, "reward": JOINT, "beta": 0.0}, "beta must be positive and finite, got 0.0"),
        ({"joint": JOINT, "reward": JOINT, "beta": 1e4}, "overflows"),
        ({"joint": JOINT, "reward": JOINT, "conditionals": np.ones((3, 3, 2, 2))}, "sum to 1 over tokens"),
        ({"joint": JOINT, "reward": JOINT, "conditionals": np.ones((2, 2))}, r"\(3, 3, 2, 2\)"),
        ({"joint": np.full((4,) * 7, 4.0**-7), "reward": np.zeros((4,) * 7)}, "L=7, V=4"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        Chain(**arguments)


@pytest.mark.parametrize("law", [[1.0], [0.5, 0.5, 0.5, 0.5], [2.0, -1.0, 0.0, 0.0]])
def test_a_policy_that_is_no_law_over_the_candidates_is_refused(law):
    with pytest.raises(ValueError, match="over the 4 candidates"):
        myopic().terminal_law(lambda state: np.array(law))


def test_a_canvas_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="L=4"):
        myopic().R_star((2, 2, 2))
