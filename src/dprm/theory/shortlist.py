"""The law of i.i.d. Soft-BoN, exactly.

N candidates A_1..A_N are drawn i.i.d. from q; one of them is kept with probability ∝ w(A_j), w = exp(βR*). Its law is

    E π̂(a) = N q(a) w(a) E[ 1 / (w(a) + W_{N−1}) ],   W_{N−1} = Σ of the weights of N−1 further draws.

Two routes to the expectation: a sum over multisets of N−1 candidates, and, since 1/c = ∫_0^∞ e^{−tc} dt, the integral
∫ e^{−t w(a)} φ(t)^{N−1} dt with φ(t) = Σ_b q(b) e^{−t w(b)}, which does not grow with N.
"""

from itertools import combinations_with_replacement
from math import comb, lgamma

import numpy as np

from dprm.theory.laws import normalised

MAX_MULTISETS = 2_000


def soft_bon_law(q: np.ndarray, weight: np.ndarray, draws: int) -> np.ndarray:
    """E over shortlists of π̂_N, for proposal q [n], weights w [n] > 0 and N = draws."""
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if comb(draws + len(q) - 2, draws - 1) <= MAX_MULTISETS:
        inverse = _inverse_by_multisets(q, weight, draws - 1)
    else:
        inverse = _inverse_by_quadrature(q, weight, draws - 1)
    law = draws * q * weight * inverse
    return normalised(law)


def _inverse_by_multisets(q: np.ndarray, weight: np.ndarray, others: int) -> np.ndarray:
    """E[1/(w(a) + W)] per candidate a, W the total weight of `others` draws: Σ over multisets of multinomial mass."""
    n = len(q)
    result = np.zeros(n)
    for picks in combinations_with_replacement(range(n), others):
        counts = np.bincount(picks, minlength=n) if picks else np.zeros(n, dtype=int)
        log_ways = lgamma(others + 1) - sum(lgamma(c + 1) for c in counts)
        mass = np.exp(log_ways) * np.prod(q**counts)
        result += mass / (weight + counts @ weight)
    return result


def _inverse_by_quadrature(q: np.ndarray, weight: np.ndarray, others: int) -> np.ndarray:
    """The same expectation as an integral over x = log t by the trapezoid rule.

    On the logarithmic axis the integrand is smooth and decays at both ends, however far apart the weights are.
    """
    left = np.log(1e-17 / ((others + 1) * weight.max()))
    right = np.log(50.0 / weight.min())
    x = np.linspace(left, right, int((right - left) / 0.04) + 1)
    t = np.exp(x)
    phi = np.exp(-np.outer(t, weight)) @ q
    return np.asarray(np.exp(-np.outer(weight, t)) @ (phi**others * t) * (x[1] - x[0]))


def miss_probability(q: np.ndarray, draws: int) -> float:
    """P(some candidate is absent from N i.i.d. draws), by inclusion–exclusion over subsets."""
    n = len(q)
    inside = 0.0
    for bits in range(1 << n):
        absent = sum(float(q[i]) for i in range(n) if bits >> i & 1)
        inside += (-1) ** bin(bits).count("1") * max(0.0, 1.0 - absent) ** draws
    return 1.0 - inside
