"""Finite laws: normalisation, entropy, distances in nats, and the law of a reweighted shortlist (i.i.d. Soft-BoN).

Knows arrays of probabilities, nothing about chains.
"""

from collections.abc import Mapping
from itertools import chain, combinations
from typing import Any

import numpy as np


def normalised(weights: np.ndarray) -> np.ndarray:
    """weights / Σ weights."""
    return np.asarray(weights / weights.sum())


def kl(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p ‖ q) = Σ p log(p/q); infinite where p has mass that q lacks."""
    p, q = np.ravel(p), np.ravel(q)
    support = p > 0
    if np.any(q[support] <= 0):
        return float("inf")
    return float(np.sum(p[support] * np.log(p[support] / q[support])))


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    """TV(p, q) = ½ Σ |p − q|."""
    return float(0.5 * np.abs(np.ravel(p) - np.ravel(q)).sum())


def entropy(p: np.ndarray) -> float:
    """H(p) = −Σ p log p."""
    p = np.ravel(p)
    p = p[p > 0]
    return max(0.0, float(-np.sum(p * np.log(p))))


def arrays(p: Mapping[Any, float], q: Mapping[Any, float]) -> tuple[np.ndarray, np.ndarray]:
    """Two laws {outcome: probability} as arrays over the outcomes of both."""
    outcomes = list({**p, **q})
    return np.array([p.get(x, 0.0) for x in outcomes]), np.array([q.get(x, 0.0) for x in outcomes])


def soft_bon_law(q: np.ndarray, weight: np.ndarray, draws: int) -> np.ndarray:
    """E π̂: N = draws candidates A_j are drawn i.i.d. from q, the one revealed is A_j with probability ∝ w(A_j).

    With w = exp(βR*) > 0 and W_{N−1} the sum of the weights of N−1 further draws,

        E π̂(a) = N q(a) w(a) E[1 / (w(a) + W_{N−1})] = N q(a) w(a) ∫_0^∞ e^{−t w(a)} φ(t)^{N−1} dt,

    where φ(t) = Σ_b q(b) e^{−t w(b)}, since 1/c = ∫_0^∞ e^{−tc} dt. The integral over log t is taken by the trapezoid
    rule, to about 13 digits: on that axis the integrand is smooth and decays at both ends, however far apart the
    weights are.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    left, right = np.log(1e-17 / (draws * weight.max())), np.log(50.0 / weight.min())
    t = np.exp(np.linspace(left, right, int((right - left) / 0.04) + 1))
    phi = np.exp(-np.outer(t, weight)) @ q
    integral = np.exp(-np.outer(weight, t)) @ (phi ** (draws - 1) * t)
    return normalised(q * weight * integral)


def miss_probability(q: np.ndarray, draws: int) -> float:
    """P(some candidate is absent from N i.i.d. draws), by inclusion–exclusion over subsets."""
    subsets = chain.from_iterable(combinations(q.tolist(), size) for size in range(1, len(q) + 1))
    return float(sum((-1) ** (len(absent) + 1) * (1.0 - sum(absent)) ** draws for absent in subsets))
