"""What a fit on traffic used, and what was missing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Account:
    """What a fit on traffic used, and what was missing.

    Attributes:
        shards, requests, choices: read and used. learned: "table" or "head".
        changed: share of the choices made where the policy changed a step.
        policies: choices by the digest of the policy that made them. engines: choices by engine.
        unreadable: shards that are damaged or of another kind. repeated: shards that hold what another one holds.
        without_reward, without_trace: requests, counted; examples of both in `named`.
        prompts: prompts of the requests used, 0 where none were named; alone: those answered once, which say nothing.
        explained: correlation, on requests held out, of the values of a request's choices with its reward, and its
            95 % interval; None where there were too few.
        guidance: of the policy. reason: why.
    """

    shards: int = 0
    requests: int = 0
    choices: int = 0
    learned: str = "table"
    changed: float = 0.0
    policies: dict[str, int] = field(default_factory=dict)
    engines: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    without_reward: int = 0
    without_trace: int = 0
    named: dict[str, list[str]] = field(default_factory=dict)
    prompts: int = 0
    alone: int = 0
    explained: tuple[float, float, float] | None = None
    guidance: float = 0.0
    reason: str = ""

    def lines(self) -> list[str]:
        """For people."""
        told = [f"a {self.learned} of {self.requests:,} requests with {self.choices:,} choices, {self.shards:,} shards"]
        told += [f"left out: {name} cannot be read" for name in self.unreadable]
        told += [f"left out: {name} holds what another shard holds" for name in self.repeated]
        for what, count in (("reward", self.without_reward), ("trace", self.without_trace)):
            if count:
                told.append(f"{count:,} requests without a {what}, such as {', '.join(self.named[what])}")
        if self.alone:
            told.append(f"{self.alone:,} of {self.prompts:,} prompts were answered once: they say nothing")
        return [*told, f"guidance {self.guidance:g}: {self.reason}"]

    def save(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps({"kind": "dprm.traffic", **asdict(self)}, indent=2, ensure_ascii=False) + "\n")
