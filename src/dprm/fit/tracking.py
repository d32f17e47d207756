"""A table while it is learned: how much it has seen, how far its values can be off, and how much they still move.

A fit adds one moment a round and notes all of them in its policy, so that a page can show them over time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from dprm.order.stats import Stats
from dprm.order.values import drift, radius

# With which probability any radius may fail.
DELTA = 0.05


@dataclass(frozen=True)
class Tracking:
    """A table over time, T moments.

    Attributes:
        events: [T], in all.
        ready: [T], share of the events that lie in ready cells.
        radius: [T], median radius of R̂ over the events; the mean would be that of cells that were hardly ever seen.
        drift: [T], mean change over the events, by cell, of the mean of e^{β(R − R_min)} since the moment before; 0 at
            the first.
    """

    events: tuple[float, ...] = ()
    ready: tuple[float, ...] = ()
    radius: tuple[float, ...] = ()
    drift: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.events)

    def then(self, before: Stats | None, now: Stats, ready: float, horizon: int) -> Tracking:
        """One moment more, if there is any evidence yet.

        Args:
            before: the evidence one moment ago, None at the first. now: the evidence.
            ready: events from which on a cell is ready. horizon: moments in all; the radii hold for them together.
        """
        n = now.sums[0]
        total = n.sum()
        if not total > 0:
            return self
        wide, order = radius(now, DELTA, horizon).sort()
        middle = int(torch.searchsorted(n[order].cumsum(0), total / 2))
        moved = torch.zeros_like(n) if before is None else drift(before, now)
        return Tracking(
            (*self.events, float(total)),
            (*self.ready, _short((n * (n >= ready)).sum() / total)),
            (*self.radius, _short(wide[middle])),
            (*self.drift, _short((moved * n).sum() / total)),
        )

    def note(self) -> str:
        """For the notes of a policy."""
        return json.dumps(asdict(self))

    @classmethod
    def of_notes(cls, notes: dict[str, str]) -> Tracking:
        """What a policy says; no moment where it says nothing."""
        fields = json.loads(notes.get("tracking", "{}"))
        return cls(**{name: tuple(column) for name, column in fields.items()})


def _short(number: Tensor) -> float:
    """Five digits are enough to draw it."""
    return float(f"{float(number):.5g}")
