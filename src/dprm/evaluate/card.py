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

from dprm.evaluate.replays import Parting, Replays
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
        differs: share of problems whose final output is not exactly that of the reference.
        guidance: strength of the policy's correction. fit: what the policy says of its fit, its cost among it.
        ablates: the arm that this one takes something away from; gap, gap_low, gap_high: paired, that arm minus this.
        diagnostics: see `evaluate.diagnostics`.
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
    differs: float | None = None
    guidance: float | None = None
    fit: dict[str, str] = field(default_factory=dict)
    ablates: str | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict)


@dataclass
class Card:
    """A comparison of orders on one host, paired on the same problems at the same budget.

    Attributes:
        device: where the model ran. verdict: what `evaluate.verdict` says of the card.
        replays, partings: where the orders part, see `evaluate.replays`; cards without them are read too.
    """

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
    device: str | None = None
    verdict: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    replays: Replays | None = None
    partings: dict[str, Parting] = field(default_factory=dict)
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
            arms = {name: Arm(**arm) for name, arm in data["arms"].items()}
            replays = Replays.read(data["replays"]) if data.get("replays") else None
            partings = {name: Parting(**parting) for name, parting in data.get("partings", {}).items()}
            return cls(**{**data, "arms": arms, "replays": replays, "partings": partings})
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
