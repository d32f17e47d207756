"""The experiments can fail: break the object under test and the measured number crosses its bound."""

import numpy as np
import pytest

from dprm.theory import (
    alignment,
    doob,
    early,
    gating,
    late,
    predictor,
    random_chain,
    sampling,
    score,
    softbon,
    tracking,
)
from dprm.theory.chain import Chain
from dprm.theory.ordering import learn_online, order_effect


def perturbed(chain):
    """π* mixed with a tenth of the uniform law."""
    return lambda state: 0.9 * chain.pi_star(state) + 0.1 * chain.random(state)


def test_a_perturbed_gibbs_law_misses_the_tilted_terminal_law():
    chain = random_chain(0, length=4)
    assert doob.terminal_gap(chain, chain.pi_star) < doob.EXACT < doob.terminal_gap(chain, perturbed(chain))


def test_a_perturbed_gibbs_law_is_not_the_one_step_conditional():
    chain = random_chain(0, length=4)
    assert doob._one_step_gap(chain, chain.pi_star) < doob.EXACT < doob._one_step_gap(chain, perturbed(chain))


def test_the_terminal_statement_fails_when_pi_star_is_wrong(monkeypatch):
    monkeypatch.setattr(Chain, "pi_star", Chain.q0)
    assert not doob.terminal(0, True).holds
    assert not doob.one_step(0, True).holds


def test_a_shortlist_that_ignores_its_values_breaks_the_soft_bon_bound(monkeypatch):
    assert softbon.local(0, True).holds
    monkeypatch.setattr(softbon, "soft_bon_law", lambda q, weight, draws: q)
    assert not softbon.local(0, True).holds


def test_a_sampled_null_host_with_parallel_reveals_is_no_null():
    host = random_chain(0, length=4, concentration=0.5, tokens="sampled")
    assert order_effect(host) < 1e-12 < order_effect(host.replace(m=2))


@pytest.mark.parametrize("reward", [False, True])
def test_a_shrunken_radius_loses_its_coverage(reward):
    assert tracking.mean_coverage(0, 500, reward=reward, shrink=0.1) < 1 - tracking.DELTA


def test_a_shrunken_drift_radius_loses_its_coverage():
    assert tracking.drift_coverage(0, 200, 1.0, shrink=0.1) < 1 - tracking.DELTA


def test_the_drift_constant_of_the_paper_turns_at_one_half():
    assert tracking.drift_constant_ratio(0.49, 0.01) > 1 > tracking.drift_constant_ratio(0.51, 0.01)


def test_a_shrunken_score_bound_is_exceeded():
    chain = random_chain(0, length=4)
    assert score.score_ratio(chain, 100, np.random.default_rng(0), shrink=0.1) > 1


def test_regret_grows_past_the_bound_if_the_error_is_understated():
    g, noisy = score._adversary(2)
    assert score.regret_ratio(g, noisy, 2) > 0.99
    assert score.regret_ratio(g, g + (noisy - g) / 3, 2) == 0.0


def test_teacher_forcing_with_another_order_than_inference_disagrees():
    chain = alignment.posterior_host(0)
    same = alignment.marginal_gap(chain, chain.q0, alignment.blind(chain.q0))
    other = alignment.marginal_gap(chain, chain.confidence, alignment.blind(chain.q0))
    assert same < alignment.EXACT < other


def test_a_wrong_denoiser_is_not_the_bayes_predictor():
    chain = alignment.posterior_host(0)
    law = predictor._masking_laws(chain)["confidence"]
    assert predictor.predictor_gap(chain, law)[0] < 1e-10
    noisy = 0.9 * chain.conditionals + 0.1 / chain.vocab
    assert predictor.predictor_gap(chain.replace(conditionals=noisy), law)[0] > 0.01


def test_exact_error_of_map_agrees_with_simulated_masks():
    d, n, runs = 2, 40, 4_000
    rng = np.random.default_rng(0)
    hidden = rng.random((runs, n, d + 1)) < sampling.RATE
    informative = hidden[..., d] & ~hidden[..., :d].any(-1)
    right = rng.random((runs, n)) < 1 - sampling.NOISE
    votes = (informative * np.where(right, 1, -1)).sum(1)
    simulated = np.mean(votes < 0) + 0.5 * np.mean(votes == 0)
    looks = rng.binomial(n, sampling.RATE * (1 - sampling.RATE) ** d, size=200_000)
    errors = sampling.vote_error(np.arange(n + 1), sampling.NOISE)
    assert simulated == pytest.approx(errors[looks].mean(), abs=0.025)


def test_chernoff_information_of_equal_laws_is_zero_and_bernoulli_has_its_closed_form():
    p = np.array([0.3, 0.7])
    assert sampling.chernoff_information(p, p) == pytest.approx(0.0, abs=1e-12)
    assert sampling.chernoff_information(p, p[::-1]) == pytest.approx(-np.log(2 * np.sqrt(0.21)), abs=1e-12)


def test_a_wrong_proposal_has_a_larger_second_moment():
    u, nu = np.array([0.5, 0.5]), np.array([1.0, 3.0])
    assert early.second_moment(u, nu, u) > early.second_moment(u, nu, np.array([0.25, 0.75]))


def test_without_concentration_random_orders_are_as_fast_as_confidence():
    confident, uniform = early.exact_family(3, 7 / 8, 1.0, np.random.default_rng(0))
    assert early.updates_needed(uniform, 0.01) == early.updates_needed(confident, 0.01)


def test_updates_needed_reaches_the_target_and_not_earlier():
    V, epsilon = 4.0, 0.01
    T = early.updates_needed(V, epsilon)

    def best(updates):
        finals = []
        for step in np.geomspace(1e-4, 0.1, 2_000):
            rate, floor = 1 - 2 * step + step**2 * V, step * V / 2 / (2 - step * V)
            finals.append(floor + (1 - floor) * rate**updates)
        return min(finals)

    assert best(T + 1) <= epsilon < best(T - 2)


def test_the_residual_mass_bound_fails_if_the_error_is_left_out():
    members = np.array([True, False, False])
    scores = np.where(members, 2.0 - 0.5, 0.5)
    assert late.residual_mass(scores, members) < late.mass_bound(2.0, 0.0, 1, 2)
    assert late.residual_mass(scores, members) == pytest.approx(late.mass_bound(2.0, 0.5, 1, 2))


def test_the_entropy_cap_of_a_smaller_delta_is_exceeded():
    rng = np.random.default_rng(0)
    ratio = gating.entropy_ratio(0.3, 3, rng)
    assert ratio == pytest.approx(1.0)
    assert ratio * gating.cap(0.3, 3) > gating.cap(0.2, 3)


def test_learning_online_needs_exploration():
    assert learn_online("top_m", 0) == 0.0
    assert learn_online("soft_bon", 0, rounds=0) == 0.0
    assert learn_online("soft_bon", 0) == 1.0
