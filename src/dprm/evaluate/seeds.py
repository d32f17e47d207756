"""Fits that differ in nothing but their seed: every one is analysed by itself, then their average.

One fit may be lucky. What an estimator gains is the average over its seeds, and how much one fit can differ from it
shows in the single numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from dprm.evaluate.bootstrap import seeds_interval
from dprm.fit.cost import SAME_PRICE, Cost
from dprm.host.rollout import Rollout

_SEED = re.compile(r"\bseed=-?\d+")


def same_but_for_seed(fits: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """Groups of at least two fits, by name, that share host, estimator, setting but for the seed, and price."""
    groups: dict[tuple[str, ...], list[list[str]]] = {}
    paths = {name: Cost.of_notes(dict(notes)).paths for name, notes in fits.items() if "setting" in notes}
    for name in sorted(paths, key=lambda name: paths[name]):
        notes = fits[name]
        shared = notes.get("host", ""), notes.get("estimator", ""), _SEED.sub("seed", notes["setting"])
        prices = groups.setdefault(shared, [])
        if prices and paths[name] <= SAME_PRICE * paths[prices[-1][0]]:
            prices[-1].append(name)
        else:
            prices.append([name])
    return [names for prices in groups.values() for names in prices if len(names) > 1]


def averages(
    found: Mapping[str, Rollout],
    reference: str,
    fits: Mapping[str, Mapping[str, str]],
    resamples: int = 5000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """For the notes of a card: the average difference of every group of seeds to the reference, with its interval."""
    control = found[reference].reward.double()
    entries = []
    for names in same_but_for_seed({name: notes for name, notes in fits.items() if name in found}):
        differences = torch.stack([found[name].reward.double() - control for name in names])
        average, _ = seeds_interval(differences, resamples, seed=seed)
        entry = {"estimator": fits[names[0]]["estimator"], "fits": names}
        entries.append({**entry, "delta": average.estimate, "low": average.low, "high": average.high})
    return entries


def told(entry: Mapping[str, Any], reference: str) -> str:
    """One of the `averages` in words."""
    interval = f"{entry['delta']:+.3f} [{entry['low']:+.3f}, {entry['high']:+.3f}]"
    return f"{entry['estimator']}, average of {len(entry['fits'])} seeds: {interval} to {reference}"
