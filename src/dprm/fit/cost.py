"""What a fit has cost: counted the same way for every estimator, so that they can be compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Cost:
    """Work done.

    Attributes:
        rollouts: whole decodings. branches: continuations from the middle of one.
        calls: denoiser calls, one for each canvas in the batch.
    """

    rollouts: int = 0
    branches: int = 0
    calls: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rollouts + other.rollouts, self.branches + other.branches, self.calls + other.calls)

    def notes(self) -> dict[str, str]:
        """For the notes of a policy."""
        return {name: str(number) for name, number in asdict(self).items()}

    @classmethod
    def of_notes(cls, notes: dict[str, str]) -> Cost:
        """What `notes` wrote; nothing where there is nothing."""
        return cls(**{name: int(notes.get(name, 0)) for name in ("rollouts", "branches", "calls")})
