"""Every statement can fail: with its condition, or the formula under test, broken it no longer holds."""

import numpy as np
import pytest

from dprm.theory import (
    Chain,
    alignment,
    doob,
    early,
    gating,
    late,
    laws,
    myopic,
    null_control,
    online,
    ordering,
    predictor,
    random_chain,
    sampling,
    score,
    softbon,
    statements,
    tracking,
)
from dprm.theory.bucket import BucketTable


def certain_host(seed):
    """A sampled host whose joint is one sequence, so that nothing about it is hidden."""
    joint = np.zeros((3, 3, 3, 3))
    joint[0, 1, 2, 0] = 1.0
    return Chain(joint, np.zeros_like(joint), tokens="sampled")


def noisy_host(seed):
    """A host whose denoiser is not the posterior of its joint."""
    return null_control(seed, noise=0.1)


def greedy_host(seed):
    return null_control(seed).replace(tokens="greedy")


def parallel_host(seed, beta):
    return null_control(seed, beta=beta).replace(m=2)


def nearly_confident(chain):
    return lambda state: 0.999 * chain.confidence(state) + 0.001 * chain.random(state)


def uniform_moment(chain, policy):
    """E[exp(βR)] in uniform order, whatever the policy."""
    return chain.backward(np.exp(chain.beta * chain.reward), lambda state, future: future.mean())


def gibbs(q, weight, draws):
    """The tilted law, as if the shortlist were everything."""
    return laws.normalised(q * weight)


BUCKET_VALUE = BucketTable.value
RANDOM_CHAIN, RADIUS, COVERAGE = doob.random_chain, tracking.radius, tracking.mean_coverage
SCORE_RATIO, REGRET = score.score_ratio, score.regret_ratio
SHORTLIST, MISTAKES = score.shortlist_regret, score.mistakes
MINIMISER, CHERNOFF, SAMPLES = predictor._minimiser, sampling.chernoff_information, sampling.samples_needed
RATIO, FAMILY, UPDATES = early.moment_ratio, early.exact_family, early.updates_needed
MASS, BOUND, LATE_UPDATES, EVENTS = late.dprm_mass, late.mass_bound, late.updates_needed, late.events_needed
CAP = gating.cap
FITTED, JUMPING, RUN = late.fitted, online.jumping, online.Course.run

# statement: (owner, name, what stands in its place while the statement runs)
BROKEN = {
    # h continues in uniform order instead of q0.
    "doob/recursion": (Chain, "moment", uniform_moment),
    # π* forgets its values.
    "doob/one-step": (Chain, "pi_star", Chain.q0),
    "doob/terminal": (Chain, "pi_star", Chain.q0),
    # With greedy tokens π* does reach ν_β.
    "doob/terminal-sampled": (doob, "random_chain", lambda *a, **k: RANDOM_CHAIN(*a, **(k | {"tokens": "greedy"}))),
    # Greedy tokens instead of the clean sequence.
    "doob/teacher-forcing": (doob, "teacher_forced", lambda chain, clean: chain),
    # The logarithm of a moment divided by half of β.
    "doob/bounded": (Chain, "R_star", lambda chain, state: 2 * np.log(chain.future(state)) / chain.beta),
    # A shortlist that ignores its values.
    "softbon/local": (softbon, "soft_bon_law", lambda q, weight, draws: q),
    "softbon/terminal": (Chain, "soft_bon", lambda chain, draws: chain.q0),
    # Nearly always the most confident position.
    "softbon/by-state": (softbon, "_by_state", nearly_confident),
    # A formula for shortlists that miss nothing.
    "softbon/missed": (softbon, "miss_probability", lambda q, draws: 0.0),
    # Sampling ∝ exp(score) in place of the argmax.
    "softbon/hard-shortlist": (Chain, "argmax", staticmethod(lambda g: laws.normalised(np.exp(g)))),
    # The chain rule belongs to KL; total variation has none.
    "softbon/chain-rule": (softbon, "kl", laws.total_variation),
    "tracking/bucket-mean": (tracking, "radius", lambda *a: 0.1 * RADIUS(*a)),
    "tracking/bucket-reward": (tracking, "radius", lambda *a: 0.1 * RADIUS(*a)),
    # D(t) alone does not cover the error of few events.
    "tracking/drift": (tracking, "radius", lambda *a: 0 * RADIUS(*a)),
    # Near 0 the logarithm is linear and the paper's step is right.
    "tracking/log-step": (tracking, "radius", lambda *a: 1e-9 * RADIUS(*a)),
    # One event per trajectory and cell.
    "tracking/repeated-events": (tracking, "mean_coverage", lambda seed, trials, copies: COVERAGE(seed, trials)),
    # The corrected constant 1/(βμ̲), radius 0.
    "tracking/drift-constant": (tracking, "drift_constant_ratio", lambda b, jump: jump * b / np.expm1(b * jump)),
    # A bound ten times smaller.
    "score/uniform": (score, "score_ratio", lambda *a: 10 * SCORE_RATIO(*a)),
    # A radius so large that it hides the forgotten cell.
    "score/largest-gate": (score, "radius", lambda *a: 1e6 * RADIUS(*a)),
    # Empty cells have the value of the visited one.
    "score/fallback": (BucketTable, "value", lambda table, cell: BUCKET_VALUE(table, (0, 9))),
    # Data of q0 on both sides.
    "score/on-policy": (Chain, "hard", Chain.q0),
    # The error understated by a half.
    "score/regret": (score, "regret_ratio", lambda *a: 2 * REGRET(*a)),
    # The full candidate set.
    "score/regret-shortlist": (score, "shortlist_regret", lambda drawn, rng: SHORTLIST(8, rng)),
    # Sets ranked by their own values.
    "score/sets": (score, "_positionwise", lambda chain: chain.hard),
    # ε above Δ/2.
    "score/margin": (score, "mistakes", lambda share, *a: MISTAKES(1.2, *a)),
    # Bounds ten times smaller.
    "online/joint": (online.Course, "run", lambda *a, **k: tuple(10 * ratio for ratio in RUN(*a, **k))),
    "online/moving-host": (online.Course, "run", lambda *a, **k: tuple(10 * ratio for ratio in RUN(*a, **k))),
    # No jump.
    "online/jump": (online, "jumping", lambda seed: JUMPING(seed, 0.0)),
    "alignment/marginals": (alignment, "null_control", greedy_host),
    "alignment/peeking": (alignment, "null_control", certain_host),
    "alignment/parallel": (alignment, "null_control", certain_host),
    # A weight that sees Y.
    "predictor/cross-entropy": (predictor, "_minimiser", lambda p, w, rng: MINIMISER(p, rng.random(p.shape), rng)),
    "predictor/bayes": (predictor, "null_control", noisy_host),
    "predictor/minimizer": (predictor, "null_control", noisy_host),
    "predictor/misspecified": (predictor, "null_control", certain_host),
    "predictor/bayes-peeking": (predictor, "null_control", certain_host),
    "predictor/bayes-normaliser": (predictor, "null_control", certain_host),
    "sampling/chernoff": (sampling, "chernoff_information", lambda P, Q: 2 * CHERNOFF(P, Q)),
    # Every mask informs.
    "sampling/random-masks": (sampling, "samples_needed", lambda informative: SAMPLES(1.0)),
    # A trajectory passes the informative state one time in four.
    "sampling/trajectories": (sampling, "samples_needed", lambda informative: SAMPLES(0.25)),
    # One sample too many: the corrected bound is no longer attained.
    "sampling/reversed-step": (sampling, "samples_needed", lambda *a, **k: SAMPLES(*a, **k) + 1),
    # Only Y is a target.
    "sampling/all-targets": (sampling, "depends_on_theta", lambda mask: mask == (0,) * (len(mask) - 1) + (1,)),
    # The uniform proposal taken for the optimum.
    "early/variance-optimal": (early, "moment_ratio", lambda u, nu, p: RATIO(u, nu, p) / RATIO(u, nu, 0 * p + 1 / 6)),
    # A proxy within κ² instead of κ.
    "early/confidence-moment": (early, "moment_ratio", lambda u, nu, p: RATIO(u, nu, laws.normalised(p**2 / (u * nu)))),
    # The optimal proposal in the place of the random one.
    "early/random-moment": (early, "moment_ratio", lambda u, nu, p: RATIO(u, nu, laws.normalised(u * nu))),
    # A gradient that grows with confidence.
    "early/softmax-proxy": (early, "gradient_norm", lambda p: np.sqrt((p**2).sum(1))),
    # No concentration: both proposals are as good.
    "early/separation": (early, "exact_family", lambda d, *a: (FAMILY(d, *a)[0],) * 2),
    # Noise at the optimum.
    "early/interpolation": (early, "updates_needed", lambda V, epsilon, sigma: UPDATES(V, epsilon)),
    # The score error left out.
    "late/residual-mass": (late, "mass_bound", lambda gap, epsilon, *a: BOUND(gap, 0.0, *a)),
    # A β that does not grow with h, and one that does.
    "late/separation": (late, "dprm_mass", lambda h, beta, epsilon: MASS(h, 4.0, epsilon)),
    # The table's order at a β that does not grow with h.
    "late/practical": (late, "fitted", lambda h, beta, rng: FITTED(h, 4.0, rng)),
    "late/beta": (late, "dprm_mass", lambda h, beta, epsilon: MASS(h, 2 * late.B * h + late.C, epsilon)),
    "late/shortlist": (late, "soft_bon_law", gibbs),
    # No progress from outside R.
    "late/shared-parameters": (late, "updates_needed", lambda mass: LATE_UPDATES(2 * mass - 1)),
    # The least possible β.
    "late/value-cost": (late, "events_needed", lambda h, beta: EVENTS(h, late.B * h + late.C)),
    "gating/entropy-cap": (gating, "cap", lambda delta, vocab: CAP(delta / 2, vocab)),
    # δ cut off at 1 − 1/V.
    "gating/large-delta": (gating, "cap", lambda delta, vocab: CAP(min(delta, 1 - 1 / vocab), vocab)),
    "gating/random-order": (Chain, "q0", Chain.confidence),
    "ordering/null": (ordering, "null_control", parallel_host),
    # The null host itself, with no condition dropped.
    "ordering/null-broken": (Chain, "replace", lambda chain, **changes: chain),
    "ordering/myopic": (Chain, "hard", Chain.confidence),
    # Two prompts that want the same.
    "ordering/aliased": (ordering, "aliased_pair", lambda: (myopic(), myopic())),
    # No exploration.
    "ordering/online": (BucketTable, "soft_bon", lambda table, chain, draws: table.hard(chain)),
}


def test_every_statement_has_a_refutation():
    assert sorted(BROKEN) == sorted(one.name for one in statements())


@pytest.mark.parametrize("name", BROKEN)
def test_a_statement_fails_when_what_it_needs_is_broken(name, monkeypatch):
    (one,) = [one for one in statements() if one.name == name]
    monkeypatch.setattr(*BROKEN[name])
    outcome = one.run(0, True)
    assert not outcome.holds
    assert np.isfinite(outcome.measured)


def perturbed(chain):
    """π* mixed with a tenth of the uniform law."""
    return lambda state: 0.9 * chain.pi_star(state) + 0.1 * chain.random(state)


def test_a_slightly_perturbed_gibbs_law_is_seen():
    chain = random_chain(0, length=4)
    gap = laws.total_variation(chain.terminal_law(perturbed(chain)), chain.nu_beta)
    assert min(gap, doob.one_step_gap(chain, perturbed(chain))) > 1e-3


def test_the_drift_constant_of_the_paper_turns_at_one_half():
    assert tracking.drift_constant_ratio(0.49, 0.01) > 1 > tracking.drift_constant_ratio(0.51, 0.01)


def test_regret_is_largest_for_the_adversary_and_nothing_for_a_third_of_its_error():
    g, noisy = score.adversarial_scores(2)
    assert score.regret_ratio(g, noisy, 2) > 0.99
    assert score.regret_ratio(g, g + (noisy - g) / 3, 2) == 0.0


def test_teacher_forcing_with_another_order_than_inference_disagrees():
    chain = null_control(0)
    same = alignment.marginal_gap(chain, chain.q0, alignment.blind(chain.q0))
    other = alignment.marginal_gap(chain, chain.confidence, alignment.blind(chain.q0))
    assert same < alignment.EXACT < 0.01 < other


def test_exact_error_of_map_agrees_with_simulated_masks():
    d, n, runs = 2, 40, 4_000
    rng = np.random.default_rng(0)
    hidden = rng.random((runs, n, d + 1)) < sampling.RATE
    informative = hidden[..., d] & ~hidden[..., :d].any(-1)
    right = rng.random((runs, n)) < 1 - sampling.NOISE
    votes = (informative * np.where(right, 1, -1)).sum(1)
    simulated = np.mean(votes < 0) + 0.5 * np.mean(votes == 0)
    law = sampling.binomial(n, sampling.RATE * (1 - sampling.RATE) ** d)
    assert law.sum() == pytest.approx(1.0)
    assert simulated == pytest.approx(law @ sampling.vote_errors(sampling.NOISE)[: n + 1], abs=0.025)


def test_chernoff_information_of_equal_laws_is_zero_and_bernoulli_has_its_closed_form():
    p = np.array([0.3, 0.7])
    assert sampling.chernoff_information(p, p) == pytest.approx(0.0, abs=1e-12)
    assert sampling.chernoff_information(p, p[::-1]) == pytest.approx(-np.log(2 * np.sqrt(0.21)), abs=1e-12)


def test_without_concentration_random_orders_are_as_fast_as_confidence():
    confident, uniform = early.exact_family(3, 7 / 8, 1.0, np.random.default_rng(0))
    assert early.updates_needed(uniform, 0.01) == early.updates_needed(confident, 0.01)


def test_updates_needed_reaches_the_target_and_not_earlier():
    V, epsilon = 4.0, 0.01
    T = early.updates_needed(V, epsilon)

    def best(updates):
        step = np.geomspace(1e-4, 0.1, 2_000)
        rate, floor = 1 - 2 * step + step**2 * V, step * V / 2 / (2 - step * V)
        return (floor + (1 - floor) * rate**updates).min()

    assert best(T + 1) <= epsilon < best(T - 2)


def test_without_noise_one_step_size_is_best_and_the_rate_is_one_minus_its_inverse():
    V, epsilon = 100.0, 1e-6
    assert early.updates_needed(V, epsilon, sigma=0.0) == np.ceil(np.log(epsilon) / np.log(1 - 1 / V))


def test_the_residual_mass_bound_is_attained_by_the_adversarial_error():
    members = np.array([True, False, False])
    scores = np.where(members, 2.0 - 0.5, 0.5)
    assert late.gibbs_mass(scores, members) == pytest.approx(late.mass_bound(2.0, 0.5, 1, 2))


def test_learning_online_needs_rounds():
    assert ordering.learn_online("soft_bon", 0, rounds=0) == 0.0
