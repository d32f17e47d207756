"""Finite laws: normalisation, entropy and distances, in nats. Knows arrays of probabilities, nothing about chains."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)


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


def kl_of_dicts(p: Mapping[K, float], q: Mapping[K, float]) -> float:
    """KL between two laws given as {outcome: probability}."""
    keys = list(p)
    return kl(np.array([p[k] for k in keys]), np.array([q.get(k, 0.0) for k in keys]))
