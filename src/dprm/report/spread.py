"""Side by side: marks that want about the same place, moved as little as it takes to stand clear of each other."""

from __future__ import annotations


def spread(wanted: list[float], apart: float) -> list[float]:
    """The places x₁ … xₙ nearest to the wanted ones w₁ ≤ … ≤ wₙ, in the same order and at least d apart.

    min Σ (xᵢ − wᵢ)² with xᵢ₊₁ − xᵢ ≥ d is the isotonic regression of wᵢ − i·d: neighbours that would come too close
    are pooled, and a pool stands around the mean of what its members want.
    """
    pools: list[tuple[float, int]] = []
    for index, place in enumerate(wanted):
        total, count = place - index * apart, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    levels = [total / count for total, count in pools for _ in range(count)]
    return [level + index * apart for index, level in enumerate(levels)]
