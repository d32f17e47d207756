"""Result cards: one JSON file a comparison, with everything needed to run it again."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch

from dprm.order.files import write_whole

SCHEMA = 1


@dataclass
class Arm:
    """One order in a comparison.

    Attributes:
        mean, low, high: mean reward and its interval. solved: share of problems with full reward.
        delta, delta_low, delta_high: paired difference to the reference order; None for the reference itself.
        nfe: mean model calls a problem. changed: share of decisions that were not the host's own.
        ready: share of decisions in ready cells. gate: mean gate of the decisions.
        seconds: mean seconds a problem. policy: digest of the policy, if there is one.
    """

    mean: float
    low: float
    high: float
    solved: float
    delta: float | None
    delta_low: float | None
    delta_high: float | None
    nfe: float
    changed: float
    ready: float
    gate: float
    seconds: float
    policy: str | None = None


@dataclass
class Card:
    """A comparison of orders on one host, paired on the same problems at the same budget."""

    host: str
    split: str
    problems: str
    count: int
    budget: str
    reference: str
    seed: int
    resamples: int
    arms: dict[str, Arm]
    command: str
    weights: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=lambda: versions())
    schema: int = SCHEMA

    def save(self, path: Path) -> None:
        """Write the card, whole or not at all."""
        write_whole(path, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        """The card as readable JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def load(cls, path: Path) -> Card:
        """Read a card; ValueError says what is wrong with any other file."""
        try:
            data = json.loads(path.read_text())
            if data.get("schema") != SCHEMA:
                raise ValueError(f"schema {data.get('schema')!r}, expected {SCHEMA}")
            return cls(**{**data, "arms": {name: Arm(**arm) for name, arm in data["arms"].items()}})
        except (json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is not a result card: {error}") from error


def versions() -> dict[str, str]:
    """What a result may depend on besides the code."""
    import dprm

    return {
        "dprm": dprm.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "machine": f"{platform.machine()} {sys.platform}",
    }
