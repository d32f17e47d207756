"""Study cards: several trainings of one host, each decoded in several ways, on the same problems.

    condition = training × order × positions a step      every problem n times (samples), under S decode seeds

What a problem earns in a condition is the share of its answers that are solved, or with several samples its mean
pass@K. Decode seeds are averaged problem by problem, problems are resampled, differences are paired. All of it follows
from the outcomes that are kept beside the card. Shapes: S decode seeds, N problems, n samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.bootstrap import Interval, difference_interval, mean_interval, spread
from dprm.evaluate.card import versions
from dprm.evaluate.outcomes import Outcomes, beside
from dprm.evaluate.passk import ESTIMATORS, KS, mean_pass, pass_table
from dprm.order.files import read_whole, write_whole

KIND = "study"
SCHEMA = 2
# Orders that are made of the policy a training learned: with its values, or drawing alike without them.
LEARNED, EMPTY = "learned", "empty"


@dataclass(frozen=True)
class Condition:
    """What was decoded: after which training, under which order, how many positions a step."""

    arm: str
    order: str
    width: int

    @property
    def label(self) -> str:
        """The name of its outcomes."""
        return f"{self.arm} by {self.order}, {self.width} a step"


@dataclass
class Study:
    """The card of a study.

    Attributes:
        problems: digest of every part of the problems. count: how many there are in all.
        arms: by name, how each was trained: law, steps, recipe, digest of its weights and of the policy it learned.
        results: one entry a condition and part. differences: of two conditions, each with `treated`, `control` and an
            interval; `over` says in what they differ: "order", "training", or "both".
        audit: the order audit of a condition; a statistic that is not defined anywhere is left out.
        passk: training and order → part → estimator → K → pass@K.
        notes: settings that all arms share. variant: what `Host.at` chose.
        samples: n. seeds: of the decodings. parts: the first problem of every part, and the one after its last.
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
    variant: str = ""
    paired: bool = True
    samples: int = 1
    seeds: list[int] = field(default_factory=lambda: [0])
    parts: dict[str, list[int]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)
    kind: str = KIND
    schema: int = SCHEMA

    def save(self, path: Path, outcomes: Outcomes | None = None) -> None:
        """Write the card, whole or not at all, and beside it the outcomes that its intervals come from."""
        if outcomes is not None:
            outcomes.save(beside(path))
        write_whole(path, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        """The card as readable JSON."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def load(cls, path: Path) -> Study:
        """Read a card; ValueError says what is wrong with any other file."""
        try:
            data = json.loads(read_whole(path))
            if not isinstance(data, dict):
                raise ValueError("it is no JSON object")
            kind, schema = data.get("kind"), data.get("schema")
            if kind != KIND or schema not in (1, SCHEMA):
                raise ValueError(f"kind {kind!r} of schema {schema!r}: expected {KIND!r} of 1 or {SCHEMA}")
            if schema == 1:  # It has no outcomes beside it, and says in its notes what has a place of its own now.
                data |= {"schema": SCHEMA, "variant": data.get("notes", {}).get("difficulty") or ""}
            return cls(**data)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a study card: {error}") from error
        except (TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not a study card: it has other fields than one") from error


def judged_again(card: Study, outcomes: Outcomes) -> Study:
    """The card with every number that outcomes decide worked out from them: shares, pass@K, differences, intervals.

    A study makes its card so; from the file beside a card come the same numbers.
    """
    if not card.parts:
        raise ValueError(f"this study was made before outcomes were kept: make it anew with `{card.command}`")
    conditions = {Condition(entry["arm"], entry["order"], entry["width"]): entry for entry in card.results}
    lacking = [condition.label for condition in conditions if condition.label not in outcomes.scores]
    if lacking or len(outcomes.key) != card.count:
        what = f"lack {lacking[0]}" if lacking else f"are of {len(outcomes.key)} problems"
        raise ValueError(f"these outcomes are not those of the study of {card.count} problems: they {what}")
    tallies = {condition: Tally(outcomes.scores[condition.label], card.samples) for condition in conditions}
    judge = _Judge(card, outcomes.group)
    results: list[dict[str, Any]] = []
    passk: dict[str, dict[str, Any]] = {}
    for condition, entry in conditions.items():
        price: dict[str, Any] = {name: entry[name] for name in ("calls", "seconds") if name in entry}
        usual = conditions.get(replace(condition, order=card.notes.get("usual", "")), entry)
        ratio = price["seconds"] / max(usual["seconds"], 1e-12)
        tally, label = tallies[condition], f"{condition.arm} by {condition.order}"
        if len({c.width for c in conditions}) > 1:
            label += f", {condition.width} a step"
        for part, (first, end) in card.parts.items():
            called = outcomes.nfe[condition.label][:, first:end].double().mean().item()
            costs = {"nfe": called, **price, "time_ratio": ratio}
            results.append({**asdict(condition), "part": part, **judge.result(tally, part), **costs})
            if card.samples > 1:
                passk.setdefault(label, {})[part] = pass_table(tally.success[:, first:end].flatten(0, 1), tally.ks)
    found = [
        {**names, "part": part, **judge.difference(tallies[treated], tallies[control], part)}
        for names, treated, control in contrasts(list(conditions))
        for part in card.parts
    ]
    notes = {**card.notes, "difference": "mean pass@K over K" if card.samples > 1 else "share solved"}
    return replace(card, results=results, differences=found, passk=passk, notes=notes)


class Tally:
    """What was solved in a condition.

    Attributes:
        success: [S,N,n] bool. reward: [N] float64, the mean over seeds and samples. ks: the K of pass@K.
    """

    def __init__(self, scores: Tensor, samples: int):
        """Args: scores [S·n,N,2], rewards and whether they are solved."""
        columns = scores.view(-1, samples, *scores.shape[1:]).transpose(1, 2)
        self.success, self.reward = columns[..., 1] > 0.5, columns[..., 0].double().mean((0, 2))
        self.ks = tuple(k for k in KS if k <= samples)

    def share(self) -> Tensor:
        """[N] float64, the share of answers that are solved."""
        return self.success.double().mean((0, 2))

    def passing(self, estimator: str) -> Tensor:
        """[N] float64, mean pass@K over K, which is the share where there is one sample."""
        return torch.stack([mean_pass(seed, self.ks, estimator) for seed in self.success]).mean(0)


@dataclass(frozen=True)
class _Judge:
    card: Study
    group: Tensor

    def result(self, tally: Tally, part: str) -> dict[str, Any]:
        rows = slice(*self.card.parts[part])
        share = self._mean(tally.share(), rows)
        found: dict[str, Any] = {"problems": rows.stop - rows.start, "solved": share.estimate}
        found |= {"low": share.low, "high": share.high, "reward": tally.reward[rows].mean().item()}
        if len(tally.success) > 1:
            found["spread"] = spread(tally.success[:, rows].double().mean((1, 2)))
        if self.card.samples > 1:
            found |= {name: self._mean(tally.passing(name), rows)._asdict() for name in ESTIMATORS}
        return found

    def difference(self, treated: Tally, control: Tally, part: str) -> dict[str, Any]:
        rows, card = slice(*self.card.parts[part]), self.card
        deltas = {
            name: difference_interval(
                treated.passing(name)[rows],
                control.passing(name)[rows],
                paired=card.paired,
                resamples=card.resamples,
                seed=card.seed,
                groups=self.group[rows],
            )._asdict()
            for name in (ESTIMATORS if card.samples > 1 else ("unbiased",))
        }
        return {**deltas["unbiased"], **({} if card.samples == 1 else deltas)}

    def _mean(self, values: Tensor, rows: slice) -> Interval:
        card = self.card
        return mean_interval(values[rows], card.resamples, seed=card.seed, groups=self.group[rows])


def contrasts(conditions: Sequence[Condition]) -> Iterator[tuple[dict[str, Any], Condition, Condition]]:
    """(names, treated, control) of every difference: two orders after one training, two trainings under one order, and
    the first learned order of a training against all that other trainings were decoded by, at one width."""
    first: dict[tuple[str, int], Condition] = {}
    for one in conditions:
        if one.order.startswith(LEARNED):
            first.setdefault((one.arm, one.width), one)
    for control, treated in combinations(conditions, 2):
        if control.width != treated.width:
            continue
        names: dict[str, Any] = {"width": control.width}
        if control.arm == treated.arm:
            names |= {"over": "order", "arm": control.arm, "treated": treated.order, "control": control.order}
            yield names, treated, control
        elif control.order == treated.order:
            names |= {"over": "training", "order": control.order, "treated": treated.arm, "control": control.arm}
            yield names, treated, control
    for treated in first.values():
        for control in conditions:
            if control.arm != treated.arm and control.width == treated.width and control.order != treated.order:
                names = {"width": control.width, "over": "both"}
                names |= {side: f"{c.arm} by {c.order}" for side, c in (("treated", treated), ("control", control))}
                yield names, treated, control
