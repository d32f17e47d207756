"""How many samples: Chernoff's bound, and random masks against teacher-forced trajectories.

The latent family. U_1..U_d fair bits, Y = θ ⊕ U_1 ⊕ … ⊕ U_d ⊕ noise, θ ∈ {0, 1}. Any strict subset of the U tells
nothing about Y (posterior collapse); with all of them visible, Y is one noisy look at θ. Under random masking with
rate q a sample is informative with probability a = q(1−q)^d.
"""

from itertools import combinations_with_replacement
from math import ceil, lgamma, log

import numpy as np

from dprm.theory.statement import Outcome, at_least, at_most, statement

RATE, NOISE, DELTA = 0.5, 0.25, 0.05


def chernoff_information(P: np.ndarray, Q: np.ndarray) -> float:
    """C(P, Q) = −min_{s∈(0,1)} log Σ P^{1−s} Q^s, by golden-section search on a convex function."""

    def value(s: float) -> float:
        return float(np.log(np.sum(P ** (1 - s) * Q**s)))

    low, high, golden = 0.0, 1.0, (np.sqrt(5) - 1) / 2
    for _ in range(80):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if value(a) < value(b) else (a, high)
    return -value((low + high) / 2)


def error_probability(P: np.ndarray, Q: np.ndarray, samples: int) -> float:
    """P(Π Q/P ≥ 1) for i.i.d. samples of P: exact, by summing over types."""
    total, ratio = 0.0, np.log(Q / P)
    for picks in combinations_with_replacement(range(len(P)), samples):
        counts = np.bincount(picks, minlength=len(P))
        if counts @ ratio >= -1e-12:
            total += np.exp(lgamma(samples + 1) - sum(lgamma(c + 1) for c in counts) + counts @ np.log(P))
    return float(total)


@statement(
    "sampling/chernoff",
    claim="P(Π Q/P ≥ 1) / exp(−T C(P,Q)), largest over random P, Q on three letters and T up to 24",
    condition="i.i.d. samples",
    needs="i.i.d. samples",
    named=True,
)
def chernoff(seed: int, quick: bool) -> Outcome:
    """Exact probabilities, no sampling."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(5 if quick else 40):
        P, Q = rng.dirichlet(np.ones(3), size=2)
        for samples in (1, 4, 12, 24):
            bound = np.exp(-samples * chernoff_information(P, Q))
            worst = max(worst, error_probability(P, Q, samples) / bound)
    return at_most(worst, 1.0)


def vote_error(looks: np.ndarray, noise: float) -> np.ndarray:
    """P(MAP is wrong) after k noisy looks at θ (majority, ties by a coin), for every k in `looks`."""
    errors = np.empty(len(looks))
    for row, k in enumerate(looks):
        j = np.arange(k + 1)
        pmf = np.exp(_log_choose(k, j) + (k - j) * log(noise) + j * log(1 - noise)) if noise else (j == k) * 1.0
        errors[row] = pmf[2 * j < k].sum() + 0.5 * pmf[2 * j == k].sum()
    return errors


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return np.array([lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) for i in k])


def samples_needed(informative: float, noise: float = NOISE, delta: float = DELTA) -> int:
    """The smallest n whose exact error Σ_k Bin(n, a)(k) e_k is at most δ."""
    most = 120
    errors = vote_error(np.arange(most + 1), noise)

    def error(n: int) -> float:
        k = np.arange(min(n, most) + 1)
        rest = (n - k) * np.log1p(-informative) if informative < 1 else np.where(k == n, 0.0, -np.inf)
        pmf = np.exp(_log_choose(n, k) + k * log(informative) + rest)
        # Looks beyond `most` are wrong less often than `most` looks; counting them at that error is an upper bound.
        return float(pmf @ errors[: len(k)] + max(0.0, 1.0 - pmf.sum()) * errors[-1])

    low, high = 0, 1
    while error(high) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) > delta else (low, middle)
    return high


@statement(
    "sampling/random-masks",
    claim="samples needed with random masks / corrected lower bound, smallest over d = 1..9",
    condition="only Y is a training target, the law of U is free of θ; n ≥ log((1−1/|Θ|)/δ) / −log(1−a)",
    needs="loss on Y only; -log(1-a), not a",
    named=False,
)
def random_masks(seed: int, quick: bool) -> Outcome:
    """Exact error of MAP; the slope of log n against d must be log(1/(1−q)) = log 2, an exponential."""
    dims = np.arange(1, 10 if quick else 14)
    chance = RATE * (1 - RATE) ** dims
    needed = np.array([samples_needed(a) for a in chance])
    slope = float(np.polyfit(dims, np.log(needed), 1)[0])
    bound = np.log((1 - 1 / 2) / DELTA) / -np.log1p(-chance)
    note = f"n = {needed[0]} at d=1, {needed[-1]} at d={dims[-1]}; slope {slope:.3f} (log 2 = 0.693)"
    return at_least(float(np.min(needed / bound)), 1.0, note, also=abs(slope - log(2)) < 0.05)


@statement(
    "sampling/trajectories",
    claim="states needed by teacher-forced trajectories / ((d+1) log(|Θ|/δ)/κ), largest over d",
    condition="posterior collapse, identifiability κ > 0, each trajectory passes the informative state",
    needs="oracle order",
    named=True,
)
def trajectories(seed: int, quick: bool) -> Outcome:
    """Every trajectory gives one look; the states it costs are d+1, so the growth is linear."""
    dims = np.arange(1, 10 if quick else 14)
    looks = samples_needed(1.0)
    flip = np.array([NOISE, 1 - NOISE])
    # P_θ is uniform over U times a Bernoulli for Y, so only the Bernoulli enters the Chernoff information.
    kappa = chernoff_information(flip, flip[::-1])
    states, bound = (dims + 1) * looks, (dims + 1) * np.log(2 / DELTA) / kappa
    slope = float(np.polyfit(np.log(dims + 1), np.log(states), 1)[0])
    note = f"{looks} trajectories for every d; states grow like (d+1)^{slope:.2f}, {states[-1]} at d={dims[-1]}"
    return at_most(float(np.max(states / bound)), 1.0, note, also=abs(slope - 1) < 0.01)


@statement(
    "sampling/reversed-step",
    claim="counter-example: samples needed without noise / the paper's lower bound log(·/δ)/a; smallest over d",
    condition="the proof uses (1−a)^n ≥ e^{−an}, which is the wrong way round; −log(1−a) in place of a repairs it",
    needs="shows: -log(1-a), not a",
    named=False,
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
    return at_most(min(ratios.values()), 1.0 - 1e-3, note, also=exact)


@statement(
    "sampling/all-targets",
    claim="counter-example: masks that inform about θ when every masked token is a target, relative to q(1−q)^d",
    condition="only Y is a target; if latents are targets too, one hidden latent with Y visible also reveals θ",
    needs="shows: loss on Y only",
    named=False,
)
def all_targets(seed: int, quick: bool) -> Outcome:
    """Enumerate masks and visible values of (U, Y) and compare each target's conditional under θ = 0 and θ = 1."""
    factors = {}
    for d in (1, 2, 3) if quick else (1, 2, 3, 4, 5):
        informative = sum(
            RATE ** sum(mask) * (1 - RATE) ** (d + 1 - sum(mask))
            for mask in np.ndindex(*(2,) * (d + 1))
            if _depends_on_theta(mask)
        )
        factors[d] = informative / (RATE * (1 - RATE) ** d)
    exact = all(abs(f - (d + 1)) < 1e-9 for d, f in factors.items())
    return at_least(min(factors.values()), 1.5, "; ".join(f"d={d}: {f:.2f}" for d, f in factors.items()), also=exact)


def _depends_on_theta(mask: tuple[int, ...]) -> bool:
    """Whether p_θ(x_i | visible) of some masked coordinate differs between θ = 0 and 1 (last coordinate is Y)."""
    shape = (2,) * len(mask)
    laws = []
    for theta in (0, 1):
        law = np.empty(shape)
        for x in np.ndindex(*shape):
            law[x] = (1 - NOISE if sum(x) % 2 == theta else NOISE) / 2 ** (len(mask) - 1)
        laws.append(law)
    for i in (i for i, hide in enumerate(mask) if hide):
        others = tuple(j for j, hide in enumerate(mask) if hide and j != i)
        rows = [np.moveaxis(law.sum(others, keepdims=True), i, -1) for law in laws]
        p, q = (row / row.sum(-1, keepdims=True) for row in rows)
        if np.abs(p - q).max() > 1e-12:
            return True
    return False
