"""How many samples: Chernoff's bound, and random masks against teacher-forced trajectories.

The latent family. U_1..U_d fair bits, Y = θ ⊕ U_1 ⊕ … ⊕ U_d ⊕ noise, θ ∈ {0, 1}. Any strict subset of the U tells
nothing about Y (posterior collapse); with all of them visible, Y is one noisy look at θ. Under random masking with
rate q a sample is informative with probability a = q(1−q)^d.
"""

from bisect import bisect_left
from itertools import combinations_with_replacement
from math import ceil, lgamma, log

import numpy as np

from dprm.theory.statement import Outcome, at_least, at_most, statement

RATE, NOISE, DELTA = 0.5, 0.25, 0.05
MAX_LOOKS = 120
"""More looks at θ than this are counted at the error of this many, an upper bound."""


def chernoff_information(P: np.ndarray, Q: np.ndarray) -> float:
    """C(P, Q) = −min_{s∈(0,1)} log Σ P^{1−s} Q^s, by the smallest on a grid of s: to about 1e-8."""
    s = np.linspace(0, 1, 10_001)[:, None]
    return float(-np.log((P ** (1 - s) * Q**s).sum(1).min()))


def error_probability(P: np.ndarray, Q: np.ndarray, samples: int) -> float:
    """P(Π Q/P ≥ 1) for i.i.d. samples of P: exact, by summing over types."""
    total, ratio = 0.0, np.log(Q / P)
    for letters in combinations_with_replacement(range(len(P)), samples):
        counts = np.bincount(letters, minlength=len(P))
        if counts @ ratio >= -1e-12:
            total += np.exp(lgamma(samples + 1) - sum(lgamma(c + 1) for c in counts) + counts @ np.log(P))
    return float(total)


@statement(
    claim="P(Π Q/P ≥ 1) / exp(−T C(P,Q)), largest over random P, Q on three letters and T up to 24",
    condition="i.i.d. samples",
    named="i.i.d. samples",
)
def chernoff(seed: int, quick: bool) -> Outcome:
    """Exact probabilities, no sampling."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(5 if quick else 40):
        P, Q = rng.dirichlet(np.ones(3), size=2)
        information = chernoff_information(P, Q)
        for samples in (1, 4, 12, 24):
            worst = max(worst, error_probability(P, Q, samples) * np.exp(samples * information))
    return at_most(worst, 1.0)


def binomial(n: int, p: float) -> np.ndarray:
    """Bin(n, p)(k) for k = 0..min(n, MAX_LOOKS)."""
    k = np.arange(min(n, MAX_LOOKS) + 1)
    if p == 1.0:
        return np.asarray(k == n, dtype=np.float64)
    log_choose = np.array([lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) for i in k])
    return np.asarray(np.exp(log_choose + k * log(p) + (n - k) * np.log1p(-p)))


def vote_errors(noise: float) -> np.ndarray:
    """P(MAP is wrong) after k noisy looks at θ (majority, ties by a coin), for k = 0..MAX_LOOKS."""
    errors = np.empty(MAX_LOOKS + 1)
    for looks in range(MAX_LOOKS + 1):
        right, law = np.arange(looks + 1), binomial(looks, 1 - noise)
        errors[looks] = law[2 * right < looks].sum() + 0.5 * law[2 * right == looks].sum()
    return errors


def samples_needed(informative: float, noise: float = NOISE, delta: float = DELTA) -> int:
    """The smallest n whose exact error Σ_k Bin(n, a)(k) e_k is at most δ."""
    errors = vote_errors(noise)

    def error(n: int) -> float:
        law = binomial(n, informative)
        return float(law @ errors[: len(law)] + max(0.0, 1.0 - law.sum()) * errors[-1])

    limit = 1
    while error(limit) > delta:
        limit *= 2
    return bisect_left(range(limit), True, key=lambda n: error(n) <= delta)


@statement(
    claim="samples needed with random masks / corrected lower bound, smallest over d = 1..9",
    condition="only Y is a training target, the law of U is free of θ; n ≥ log((1−1/|Θ|)/δ) / −log(1−a)",
    unnamed="loss on Y only; -log(1-a), not a",
)
def random_masks(seed: int, quick: bool) -> Outcome:
    """Exact error of MAP; the slope of log n against d must be log(1/(1−q)) = log 2, an exponential."""
    dims = np.arange(1, 10 if quick else 14)
    chance = RATE * (1 - RATE) ** dims
    needed = np.array([samples_needed(a) for a in chance])
    slope = float(np.polyfit(dims, np.log(needed), 1)[0])
    bound = np.log((1 - 1 / 2) / DELTA) / -np.log1p(-chance)
    note = f"n = {needed[0]} at d=1, {needed[-1]} at d={dims[-1]}; slope {slope:.3f} (log 2 = 0.693)"
    return at_least(float(np.min(needed / bound)), 1.0, note, abs(slope - log(2)) < 0.05)


@statement(
    claim="states needed by teacher-forced trajectories / ((d+1) log(|Θ|/δ)/κ), the same for every d",
    condition="posterior collapse, identifiability κ > 0, each trajectory passes the informative state",
    named="oracle order",
)
def trajectories(seed: int, quick: bool) -> Outcome:
    """Every trajectory gives one look and costs d+1 states, so the growth is linear and d+1 cancels."""
    looks = samples_needed(1.0)
    flip = np.array([NOISE, 1 - NOISE])
    # P_θ is uniform over U times a Bernoulli for Y, so only the Bernoulli enters the Chernoff information.
    kappa = chernoff_information(flip, flip[::-1])
    note = f"{looks} trajectories for every d, so {looks}(d+1) states: {10 * looks} at d=9"
    return at_most(looks * kappa / log(2 / DELTA), 1.0, note)


@statement(
    claim="counter-example: samples needed without noise / the paper's lower bound log(·/δ)/a; smallest over d",
    condition="the proof uses (1−a)^n ≥ e^{−an}, which is the wrong way round; −log(1−a) in place of a repairs it",
    unnamed="shows: -log(1-a), not a",
)
def reversed_step(seed: int, quick: bool) -> Outcome:
    """A ratio below 1 contradicts the bound as written; the order of growth is unaffected."""
    delta, ratios, exact = 1e-3, {}, True
    for d in range(1, 6):
        a = RATE * (1 - RATE) ** d
        needed = samples_needed(a, noise=0.0, delta=delta)
        ratios[d] = needed / (log(0.5 / delta) / a)
        exact &= needed == ceil(log(0.5 / delta) / -np.log1p(-a))
    note = "; ".join(f"d={d}: {r:.3f}" for d, r in ratios.items()) + "; the corrected bound is attained exactly"
    return at_most(min(ratios.values()), 1.0 - 1e-3, note, exact)


@statement(
    claim="counter-example: masks that inform about θ when every masked token is a target, relative to q(1−q)^d",
    condition="only Y is a target; if latents are targets too, one hidden latent with Y visible also reveals θ",
    unnamed="shows: loss on Y only",
)
def all_targets(seed: int, quick: bool) -> Outcome:
    """Enumerate masks and visible values of (U, Y) and compare each target's conditional under θ = 0 and θ = 1."""
    factors = {}
    for d in (1, 2, 3) if quick else (1, 2, 3, 4, 5):
        masks = [mask for mask in np.ndindex(*(2,) * (d + 1)) if depends_on_theta(mask)]
        informative = sum(RATE ** sum(mask) * (1 - RATE) ** (d + 1 - sum(mask)) for mask in masks)
        factors[d] = informative / (RATE * (1 - RATE) ** d)
    exact = all(abs(factor - (d + 1)) < 1e-9 for d, factor in factors.items())
    return at_least(min(factors.values()), 1.5, "; ".join(f"d={d}: {f:.2f}" for d, f in factors.items()), exact)


def depends_on_theta(mask: tuple[int, ...]) -> bool:
    """Whether p_θ(x_i | visible) of some masked coordinate differs between θ = 0 and 1 (last coordinate is Y)."""
    parity = np.indices((2,) * len(mask)).sum(0) % 2
    laws = [np.where(parity == theta, 1 - NOISE, NOISE) for theta in (0, 1)]
    hidden = [i for i, hide in enumerate(mask) if hide]
    for i in hidden:
        # The joint of x_i and the visible coordinates; dividing by the sum over x_i gives the conditional.
        joints = [law.sum(tuple(j for j in hidden if j != i), keepdims=True) for law in laws]
        p, q = (joint / joint.sum(i, keepdims=True) for joint in joints)
        if np.abs(p - q).max() > 1e-12:
            return True
    return False
