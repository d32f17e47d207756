"""Fits that differ in nothing but their seed, taken together.

One fit may be lucky. What an estimator gains is the average over its seeds; how much one fit can differ from it is
their spread. All seeds have the same problems and the same control, so problems are resampled once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import seeds_interval
from dprm.fit.cost import SAME_PRICE, Cost

_SEED = re.compile(r"\bseed=-?\d+")
# What fits of one kind have in common.
_SHARED = ("host", "variant", "count", "temperature", "preference", "model", "estimator")


def same_but_for_seed(fits: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """Groups of at least two fits, by name, that share what they were fitted for, their setting, and their price.

    One fit at two guidances is no two fits: of equal seeds the first is taken.
    """
    groups: dict[tuple[str, ...], list[list[str]]] = {}
    calls = {name: Cost.of_notes(dict(notes)).calls for name, notes in fits.items() if "setting" in notes}
    for name in sorted(calls, key=lambda name: calls[name]):
        notes = fits[name]
        shared = (*(notes.get(note, "") for note in _SHARED), _SEED.sub("seed", notes["setting"]))
        prices = groups.setdefault(shared, [])
        if prices and calls[name] <= SAME_PRICE * calls[prices[-1][0]]:
            if _seed_of(notes) not in {_seed_of(fits[other]) for other in prices[-1]}:
                prices[-1].append(name)
        else:
            prices.append([name])
    return [names for prices in groups.values() for names in prices if len(names) > 1]


def _seed_of(notes: Mapping[str, str]) -> str | None:
    """The seed of a fit; older ones have it in their setting."""
    written = _SEED.search(notes.get("setting", ""))
    return notes.get("seed") or (written[0] if written else None)


def averages(
    rewards: Mapping[str, Tensor],
    reference: str,
    fits: Mapping[str, Mapping[str, str]],
    *,
    paired: bool = True,
    resamples: int = 5000,
    seed: int = 0,
    groups: Tensor | None = None,
) -> list[dict[str, Any]]:
    """For the notes of a card: the average difference of every group of seeds to the reference, and their spread.

    Args:
        rewards: by arm, [N] of the same problems. fits: by arm, what policies say of their fit.
        paired: as the host declares. groups: [N], problems that belong together.
    """
    entries = []
    for names in same_but_for_seed({name: notes for name, notes in fits.items() if name in rewards}):
        average, spread = seeds_interval(
            torch.stack([rewards[name] for name in names]),
            rewards[reference],
            paired=paired,
            resamples=resamples,
            seed=seed,
            groups=groups,
        )
        entry = {"estimator": fits[names[0]]["estimator"], "fits": names, "delta": average.estimate}
        entries.append({**entry, "low": average.low, "high": average.high, "spread": spread})
    return entries


def in_words(entry: Mapping[str, Any], reference: str) -> str:
    """One of the `averages` as a sentence; older cards do not know the spread."""
    interval = f"{entry['delta']:+.3f} [{entry['low']:+.3f}, {entry['high']:+.3f}]"
    apart = f", {entry['spread']:.3f} between seeds" if entry.get("spread") is not None else ""
    return f"{entry['estimator']}, average of {len(entry['fits'])} seeds: {interval} to {reference}{apart}"
