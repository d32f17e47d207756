"""Finite laws: normalisation, entropy and distances, in nats. Knows arrays of probabilities, nothing about chains."""

from collections.abc import Mapping
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
