"""What a fit has cost: counted the same way for every estimator, so that they can be compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

# Fits whose model calls differ by no more than this factor have one price.
SAME_PRICE = 1.15


@dataclass(frozen=True)
class Cost:
    """Work done.

    Attributes:
        rollouts: whole decodings, those that choose settings among them. branches: continuations from the middle of
            one.
        rejoined: branches that came back to the canvas they had left, and were not continued from there.
        calls: model calls of all of them, one for each canvas in the batch: the price.
    """

    rollouts: int = 0
    branches: int = 0
    rejoined: int = 0
    calls: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Cost)))

    def __str__(self) -> str:
        rejoined = f" ({self.rejoined:,} came back)" if self.rejoined else ""
        return f"{self.calls:,} model calls: {self.rollouts:,} rollouts, {self.branches:,} branches{rejoined}"

    @property
    def paths(self) -> int:
        """Continuations, or whole decodings where there are no others."""
        return self.branches or self.rollouts

    def notes(self) -> dict[str, str]:
        """For the notes of a policy."""
        return {name: str(number) for name, number in asdict(self).items()}

    @classmethod
    def of_notes(cls, notes: dict[str, str]) -> Cost:
        """What `notes` wrote; nothing where there is nothing."""
        return cls(**{each.name: int(notes.get(each.name, 0)) for each in fields(cls)})
