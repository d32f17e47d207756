"""What a policy has learned, in words: which way each family of features leans, or how values go with confidence."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from dprm.order import Policy
from dprm.order.features import LEFT
from dprm.order.head import Head

# Families of features: what they match, and what is said where their weights add up to + and to −.
_SURE = r"(confidence|sureness|margin|log ratio)"
_FAMILIES = (
    (r"(turn|first) below", "a few unsure positions a step, filled up with sure ones", "sure positions by themselves"),
    (rf"{LEFT}|its square", "from right to left", "from left to right"),
    (rf"{_SURE}( ≥|$)", "the surest first", "the less sure first"),
    (rf"{_SURE} × progress", "confidence counts more towards the end", "confidence counts less towards the end"),
    (
        rf"{_SURE} × mean",
        "the surer the rest, the more confidence counts",
        "the surer the rest, the less confidence counts",
    ),
    (r"entropy( ×|$)", "earlier where many tokens are possible", "later where many tokens are possible"),
    (r"host's choice [+-]", "together with neighbours that are revealed too", "not together what stands side by side"),
    (r"hidden [+-]", "inside what is still masked", "next to what is already visible"),
    (rf"({_SURE}|entropy) [+-]", "where the neighbours are sure", "where the neighbours are not sure"),
    (r"state \d+", "", ""),
)
# A family is named from this share of all weight on; so many are.
_SHARE, _MOST = 0.06, 5
# From this correlation on values are said to go with confidence.
_CLEAR = 0.2


def in_words(policy: Policy) -> str:
    """Some phrases, the strongest first."""
    return _of_head(policy.head) if policy.head is not None else _of_table(policy)


def _of_head(head: Head) -> str:
    weights = head.strongest(10_000)
    total = sum(abs(weight) for _, weight in weights)
    if not total:
        return "Nothing: every weight is 0, and the host's own order stays."
    found = []
    for pattern, more, less in _FAMILIES:
        members = [(name, weight) for name, weight in weights if re.match(pattern, name)]
        share, lean = sum(abs(weight) for _, weight in members) / total, sum(weight for _, weight in members)
        if share >= _SHARE:
            found.append((share, (more if lean > 0 else less) or _by_state(members)))
    found.sort(key=lambda each: -each[0])
    phrases = "; ".join(f"{phrase} ({share:.0%} of all weight)" for share, phrase in found[:_MOST])
    return f"It reveals: {phrases}." if found else "No family of features stands out."


def _by_state(members: list[tuple[str, float]]) -> str:
    """Which state of the host is promoted most, and which held back."""
    sums: dict[str, float] = {}
    for name, weight in members:
        state = re.match(r"state \d+", name)
        if state is not None and not re.search(r" [+-]\d+$", name):
            sums[state[0]] = sums.get(state[0], 0.0) + weight
    if len(sums) < 2:
        return "by what stands beside a position"
    first, last = max(sums, key=lambda state: sums[state]), min(sums, key=lambda state: sums[state])
    return f"positions of host {first} before those of {last}"


def _of_table(policy: Policy) -> str:
    by_table = (policy.cells.tables, *policy.cells.shape)
    events = policy.table.support.view(by_table).sum(0)
    value = (policy.table.value.view(by_table) * policy.table.support.view(by_table)).sum(0) / events.clamp(min=1e-300)
    if not bool((events > 0).any()):
        return "Nothing: no cell has evidence, and the host's own order stays."
    half = max(1, policy.cells.shape[0] // 2)
    halves = (("early", slice(0, half)), ("late", slice(half, None)))
    halves = (("early", slice(0, half)), ("late", slice(half, None)))
    parts = [f"{when}, {_by_confidence(value[rows], events[rows])}" for when, rows in halves if len(value[rows])]
    states = events.sum((0, 1))
    means = (value * events).sum((0, 1)) / states.clamp(min=1e-300)
    if policy.cells.aux > 1 and bool((states > 0).sum() > 1):
        first = int(means.masked_fill(states == 0, -torch.inf).argmax())
        last = int(means.masked_fill(states == 0, torch.inf).argmin())
        parts.append(f"host state {first} ({float(means[first]):+.3f}) before state {last} ({float(means[last]):+.3f})")
    return f"It prefers: {'; '.join(parts)}."


def _by_confidence(value: Tensor, events: Tensor) -> str:
    """Whether values rise or fall with confidence, over events."""
    weight = events.flatten() / events.sum().clamp(min=1e-300)
    bins = torch.arange(value.shape[1], dtype=torch.float64)[None, :, None].expand_as(value).flatten()
    x, y = bins - (weight * bins).sum(), value.double().flatten() - (weight * value.double().flatten()).sum()
    scale = ((weight * x * x).sum() * (weight * y * y).sum()).sqrt()
    along = float((weight * x * y).sum() / scale) if float(scale) > 0 else 0.0
    if abs(along) < _CLEAR:
        return "values do not go with confidence"
    towards = "the surer the better" if along > 0 else "unsure positions rather than sure ones"
    return f"{towards} (correlation {along:+.2f})"
