"""How well a bucket's log-moment value is known: concentration, repeated events, drift.

Y_j = exp(βR_j) ∈ [1, e^β], μ̂ = mean of N events, v̂ = their biased variance, ℓ = log(3/δ).

    |μ̂ − μ| ≤ rad,  rad = sqrt(2 v̂ ℓ / N) + 3 (e^β − 1) ℓ / N         (empirical Bernstein)
    |R̂ − R̄| ≤ rad / (β min(μ̲, μ̂))                                     (log step, corrected)
    |R̂_t − R̄_t| ≤ (rad + D(t)) / (β min(μ̲, μ̂)),  D(t) = Σ_u |μ_u − μ_{u−1}|   (drift, corrected)

The paper divides by β μ̲ alone, and writes the drift term as (2/μ̲) D(t). Y ≥ 1, so μ̲ = 1 is always a valid choice
and makes the first point harmless; the second needs β ≥ 1/2.
"""

from itertools import product

import numpy as np

from dprm.theory.statement import Outcome, at_least, at_most, statement

DELTA = 0.1
REWARD_LAWS = (
    (np.array([0.0, 1.0]), np.array([0.95, 0.05])),
    (np.array([0.0, 1.0]), np.array([0.5, 0.5])),
    (np.linspace(0, 1, 11), np.full(11, 1 / 11)),
)
"""Laws of a reward on [0, 1] as (support, probability): rare, even and flat."""


def radius(variance: np.ndarray | float, count: np.ndarray | float, beta: float, log_term: float) -> np.ndarray:
    """The empirical-Bernstein radius of the mean of exp(βR): sqrt(2 v̂ ℓ/N) + 3(e^β − 1)ℓ/N."""
    return np.asarray(np.sqrt(2 * variance * log_term / count) + 3 * np.expm1(beta) * log_term / count)


def mean_coverage(seed: int, trials: int, copies: int = 1, reward: bool = False) -> float:
    """Smallest share of trials, over laws, β and N, in which the radius covers the error.

    Args:
        copies: how many times each independent reward is credited (N counts the copies).
        reward: compare R̂ with R̄ through the log step instead of μ̂ with μ.
    """
    rng = np.random.default_rng(seed)
    worst = 1.0
    for (support, probability), beta, independent in product(REWARD_LAWS, (0.5, 2.0, 4.0), (16, 256)):
        Y = np.exp(beta * rng.choice(support, size=(trials, independent), p=probability))
        mu, estimate = float(probability @ np.exp(beta * support)), Y.mean(1)
        rad = radius(Y.var(1), copies * independent, beta, np.log(3 / DELTA))
        if reward:
            error, rad = np.abs(np.log(estimate / mu)) / beta, rad / (beta * np.minimum(mu, estimate))
        else:
            error = np.abs(estimate - mu)
        worst = min(worst, float(np.mean(error <= rad)))
    return worst


@statement(
    claim="coverage of the empirical-Bernstein radius of a bucket mean at δ = .1; smallest over laws, β and N",
    condition="independent events with a common mean, R in [0, 1]",
    named="independent events",
)
def bucket_mean(seed: int, quick: bool) -> Outcome:
    """Monte Carlo with exact means; the bound is conservative, so coverage is near 1."""
    return at_least(mean_coverage(seed, 2_000 if quick else 20_000), 1 - DELTA)


@statement(
    claim="coverage of |R̂ − R̄| ≤ rad / (β min(μ̲, μ̂)) at δ = .1, with μ̲ = μ",
    condition="the log step needs the empirical mean above μ̲ too (automatic for μ̲ = 1); the paper asks it of μ only",
    unnamed="divide by min(mu_low, mu_hat)",
)
def bucket_reward(seed: int, quick: bool) -> Outcome:
    """The same simulation through (1/β) log."""
    return at_least(mean_coverage(seed, 2_000 if quick else 20_000, reward=True), 1 - DELTA)


@statement(
    claim="counter-example: error / bound of the paper's log step when μ̂ < μ̲ = μ, inside its own event",
    condition="|log a − log b| ≤ |a − b| / min(a, b): a lower bound on μ alone does not give 1/(βμ̲)",
    unnamed="shows: mu_hat >= mu_low is needed",
)
def log_step(seed: int, quick: bool) -> Outcome:
    """N = 200 events, all with R = 0 (Y = 1, v̂ = 0), from a law whose mean sits exactly at the edge of the radius."""
    worst = 0.0
    for beta in (0.5, 1.0, 4.0):
        rad = float(radius(np.zeros(1), 200, beta, np.log(3 / DELTA))[0])
        mu = 1.0 + rad
        assert 0 < (mu - 1) / np.expm1(beta) < 1, "a Bernoulli reward with this mean must exist"
        worst = max(worst, abs(np.log(1 / mu)) / beta / (rad / (beta * mu)))
    return at_least(worst, 1.0 + 1e-6, "all-zero samples of a Bernoulli reward with P(R=1) = 3 log(3/δ)/N")


@statement(
    claim="counter-example: coverage at δ = .1 when each trajectory credits a cell 16 times",
    condition="one event per trajectory and cell; Algorithm 1 credits one terminal reward to every reveal of a run",
    unnamed="shows: one event per run and cell",
)
def repeated_events(seed: int, quick: bool) -> Outcome:
    """N counts reveals, but only N/16 rewards are independent: the radius is four times too small."""
    coverage = mean_coverage(seed, 2_000 if quick else 20_000, copies=16)
    return at_most(coverage, 1 - DELTA - 0.05, "the lemma names independence; the algorithm does not provide it")


def drift_coverage(seed: int, trials: int, beta: float, horizon: int = 400) -> float:
    """Share of runs in which (rad + D(t)) / (β min(1, μ̂)) covers |R̂_t − R̄_t| at every t ≤ T, one event per step.

    Rewards are Bernoulli with a success probability that swings between .1 and .9; R̄_t is the current value.
    """
    rng = np.random.default_rng(seed)
    steps = np.arange(1, horizon + 1)
    chance = 0.5 - 0.4 * np.cos(2 * np.pi * steps / horizon)
    mu = 1 + chance * np.expm1(beta)
    drift = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(mu)))])
    Y = np.exp(beta * (rng.random((trials, horizon)) < chance))
    estimate = np.cumsum(Y, 1) / steps
    variance = np.maximum(np.cumsum(Y**2, 1) / steps - estimate**2, 0.0)
    rad = radius(variance, steps, beta, np.log(3 * horizon**2 / DELTA))
    error = np.abs(np.log(estimate / mu)) / beta
    return float(np.mean(np.all(error <= (rad + drift) / (beta * np.minimum(1.0, estimate)), axis=1)))


@statement(
    claim="coverage, uniform over t, of |R̂_t − R̄_t| ≤ (rad + D(t)) / (β min(μ̲, μ̂)) at δ = .1, β = .2, 1, 4",
    condition="drift constant 1/(βμ̲). The paper's 2/μ̲ is larger only for β ≥ 1/2",
    unnamed="drift constant 1/(beta mu_low)",
)
def drift(seed: int, quick: bool) -> Outcome:
    """Swinging Bernoulli rewards, checked at every step."""
    trials = 1_000 if quick else 10_000
    return at_least(min(drift_coverage(seed, trials, beta) for beta in (0.2, 1.0, 4.0)), 1 - DELTA)


def drift_constant_ratio(beta: float, jump: float, count: float = 1e9) -> float:
    """|R̂ − R̄| / (rad/(βμ̲) + (2/μ̲)D) after `count` events with R = 0 and one jump of the mean to e^{β·jump}.

    The samples are constant, so v̂ = 0; μ̲ = 1.
    """
    mu = float(np.exp(beta * jump))
    rad = float(radius(np.zeros(1), count, beta, np.log(3 * count**2 / DELTA))[0]) / beta
    return jump / (rad + 2 * (mu - 1))


@statement(
    claim="counter-example: error / bound of the paper's drift lemma, largest over β < 1/2; it is below 1 for β ≥ 1/2",
    condition="β ≥ 1/2 for the constant 2/μ̲ in |R̂ − R̄|; the score bound β|R̂ − R̄| is safe for every β",
    unnamed="shows: beta >= 1/2 is needed",
)
def drift_constant(seed: int, quick: bool) -> Outcome:
    """One jump after many constant rewards; small jumps make β = 1/2 the exact threshold."""
    jumps = (0.01, 0.1, 1.0)
    ratios = {b: max(drift_constant_ratio(b, j) for j in jumps) for b in (0.1, 0.2, 0.4, 0.49, 0.5, 1.0, 4.0)}
    below = max(r for b, r in ratios.items() if b < 0.5)
    above = max(r for b, r in ratios.items() if b >= 0.5)
    note = "; ".join(f"β={b:g}: {r:.2f}" for b, r in ratios.items())
    return at_least(below, 1.0 + 1e-6, note, side_condition=above <= 1.0)
