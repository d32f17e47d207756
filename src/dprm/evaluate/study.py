"""Study cards: one JSON file for a comparison of trainings, with everything needed to run it again.

A comparison card holds orders on one model; a study holds several models, what each was trained on, and how they differ
on the same problems.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dprm.evaluate.card import versions
from dprm.order.files import write_whole

KIND = "study"
SCHEMA = 1


@dataclass
class Study:
    """Several trainings of one host, judged on the same problems.

    Attributes:
        problems: digest of every part of the problems. count: how many there are in all.
        arms: by name, how each was trained: law, steps, recipe, digest of its weights.
        results: one entry a condition (an arm, an order, a width; or an arm and a part of the problems).
        differences: paired differences of two conditions, each with `treated`, `control` and an interval.
        audit: the order audit of a condition; a statistic that is not defined anywhere is left out.
        passk: arm → part of the problems → estimator → K → pass@K.
        notes: settings that all arms share.
    """

    host: str
    split: str
    problems: dict[str, str]
    count: int
    seed: int
    resamples: int
    arms: dict[str, dict[str, Any]]
    results: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    command: str
    audit: list[dict[str, Any]] = field(default_factory=list)
    passk: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)
    kind: str = KIND
    schema: int = SCHEMA

    def save(self, path: Path) -> None:
        """Write the card, whole or not at all."""
        write_whole(path, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        """The card as readable JSON."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def load(cls, path: Path) -> Study:
        """Read a card; ValueError says what is wrong with any other file."""
        try:
            data = json.loads(path.read_text())
            found = data.get("kind"), data.get("schema")
            if found != (KIND, SCHEMA):
                raise ValueError(f"kind {found[0]!r} of schema {found[1]!r}, expected {KIND!r} of {SCHEMA}")
            return cls(**data)
        except (json.JSONDecodeError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is not a study card: {error}") from error
