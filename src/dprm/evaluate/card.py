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

from dprm.evaluate.outcomes import Outcomes, beside
from dprm.evaluate.replays import Parting, Replays
from dprm.host.metrics import HELD_OUT, SET, Metric, Preference
from dprm.order.files import read_whole, write_whole

KIND = "comparison"
SCHEMA = 2


@dataclass
class Estimate:
    """The mean of one quantity under one arm, and its difference to the reference.

    Attributes:
        mean, low, high: over problems, with its 95 % interval; a metric of the set has one over several decode seeds.
        delta, delta_low, delta_high: the difference; None for the reference itself.
        spread: standard deviation of the mean between decode seeds; None for one seed.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    spread: float | None = None


@dataclass(kw_only=True)
class Arm(Estimate):
    """One way of answering in a comparison; its own mean and difference are those of the terminal reward.

    Attributes:
        metrics: every metric of the host, by name.
        nfe: mean model calls a problem. calls: the same by kind.
        seconds: mean seconds a problem. time_ratio: of them to the reference's.
        changed: share of decisions that were not the host's own.
        ready: share of decisions in ready cells. gate: mean gate of the decisions.
        policy: digest of the policy, if there is one. guidance: strength of its correction.
        differs: share of problems whose final output is not exactly that of the reference.
        fit: what the policy says of its fit, its cost among it; or which control the arm is.
        ablates: the arm that this one takes something away from; gap, gap_low, gap_high: that arm minus this one.
        diagnostics: see `evaluate.diagnostics`.
    """

    metrics: dict[str, Estimate] = field(default_factory=dict)
    nfe: float
    calls: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    time_ratio: float | None = None
    changed: float = 0.0
    ready: float = 0.0
    gate: float = 0.0
    policy: str | None = None
    guidance: float | None = None
    differs: float | None = None
    fit: dict[str, str] = field(default_factory=dict)
    ablates: str | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def solved(self) -> float | None:
        """The mean of the metric "solved", where the host has one."""
        return self.metrics["solved"].mean if "solved" in self.metrics else None

    @classmethod
    def read(cls, data: dict[str, Any]) -> Arm:
        """From the JSON of a card."""
        return cls(**{**data, "metrics": {name: Estimate(**entry) for name, entry in data["metrics"].items()}})


@dataclass(kw_only=True)
class Card:
    """A comparison of several ways to answer the same problems of one host.

    Attributes:
        variant: the difficulty of the problems, or whatever else `Host.at` chose; empty for the host as it is.
        split: where the problems come from. problems: their digest. count: how many; groups: how many of them are
            independent, where some belong together.
        decoding: the host's own decoding in words, by field; `count` is its count rule.
        metrics, preference: what answers are judged by, and how it makes the reward.
        paired: answers to the same problem were compared.
        seeds: of the decodings; the first is also that of the intervals.
        reference: the arm that the others are compared with.
        device: where the model ran. weights: digest of the model. command: what makes this card.
        verdict: what `evaluate.verdict` says of the card.
        replays, partings: where the orders part, see `evaluate.replays`.
    """

    host: str
    variant: str = ""
    split: str
    problems: str
    count: int
    groups: int
    decoding: dict[str, str]
    metrics: list[Metric]
    preference: Preference = field(default_factory=Preference)
    paired: bool = True
    seeds: list[int]
    resamples: int
    reference: str
    arms: dict[str, Arm]
    command: str = ""
    weights: str = ""
    device: str = ""
    verdict: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    replays: Replays | None = None
    partings: dict[str, Parting] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=lambda: versions())
    kind: str = KIND
    schema: int = SCHEMA

    @property
    def budget(self) -> str:
        """The count rule: positions a step, where it is a number."""
        return self.decoding["count"]

    @property
    def judged(self) -> list[Metric]:
        """The metrics of single answers, in the order of the columns of `Outcomes.scores`."""
        return [metric for metric in self.metrics if metric.role != SET]

    def save(self, path: Path, outcomes: Outcomes | None = None) -> None:
        """Write the card, whole or not at all, and beside it the outcomes that its intervals come from."""
        if outcomes is not None:
            outcomes.save(beside(path))
        write_whole(path, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        """The card as readable JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def load(cls, path: Path) -> Card:
        """Read a card; ValueError says what is wrong with any other file."""
        try:
            data = json.loads(read_whole(path))
            if not isinstance(data, dict):
                raise ValueError("it is no JSON object")
            if data.get("schema") == 1 and "kind" not in data:
                data = _from_first_schema(data)
            if (data.get("kind"), data.get("schema")) != (KIND, SCHEMA):
                raise ValueError(
                    f"kind {data.get('kind')!r} of schema {data.get('schema')!r}: expected {KIND} {SCHEMA}"
                )
            metrics = [Metric(entry["name"], tuple(entry["range"]), entry["role"]) for entry in data["metrics"]]
            arms = {name: Arm.read(arm) for name, arm in data["arms"].items()}
            replays = Replays.read(data["replays"]) if data.get("replays") else None
            partings = {name: Parting(**parting) for name, parting in data.get("partings", {}).items()}
            preference = Preference(**data["preference"])
            parts = {"metrics": metrics, "preference": preference, "arms": arms}
            return cls(**{**data, **parts, "replays": replays, "partings": partings})
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a result card: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            lacking = f"it has no {error}" if isinstance(error, KeyError) else "it has other fields than a card"
            raise ValueError(f"{path} is not a result card: {lacking}") from error


def _from_first_schema(data: dict[str, Any]) -> dict[str, Any]:
    """The JSON of schema 1 as it would be written now: one reward, one share solved, one decode seed.

    Its seconds hold the compilation of the model too, so there is no ratio of times. Of a head nobody measured whether
    it knew a decision, and its shuffled weights are no control of its values; intervals of averages over seeds took
    the seeds as independent.
    """
    solved = Metric("solved", role=HELD_OUT)
    heads = {name for name, arm in data["arms"].items() if arm.get("fit", {}).get("estimator") in ("head", "leaning")}
    text = json.dumps(data)
    for name in heads:
        text = text.replace(f"{name}, shuffled values", f"{name}, shuffled weights")
    data, arms = json.loads(text), {}
    for name, arm in data["arms"].items():
        if name in heads:
            unit = float(arm["fit"].get("spread", 1.0))
            fit = {note: text for note, text in arm["fit"].items() if note != "spread"}
            arm = {**arm, "ready": 0.0, "gate": 0.0, "guidance": (arm["guidance"] or 0.0) * unit, "fit": fit}
        share = {"mean": arm["solved"]}
        calls = {"calls": {"denoiser": arm["nfe"]}}
        rest = {field: value for field, value in arm.items() if field != "solved"}
        arms[name] = {**rest, **calls, "metrics": {"reward": _reward(arm), "solved": share}}
    notes = {name: note for name, note in data.get("notes", {}).items() if name != "seeds"}
    changed = {
        "variant": notes.pop("difficulty", ""),
        "groups": data["count"],
        "decoding": {"count": data["budget"]},
        "metrics": [asdict(Metric("reward")), asdict(solved)],
        "preference": {},
        "seeds": [data["seed"]],
        "arms": arms,
        "weights": data.get("weights") or "",
        "device": data.get("device") or "",
        "notes": notes,
        "kind": KIND,
        "schema": SCHEMA,
    }
    return {name: value for name, value in {**data, **changed}.items() if name not in ("budget", "seed")}


def _reward(arm: dict[str, Any]) -> dict[str, Any]:
    return {name: arm[name] for name in ("mean", "low", "high", "delta", "delta_low", "delta_high")}


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
