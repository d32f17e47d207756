"""What a comparison keeps so that people can see where orders part.

Two things, small enough for a card: whole decodings of a few problems, and, over all problems, which decisions of an
order were not the reference's. Rows of numbers are written as one line of text each, so that a card stays readable.
Shapes: N problems, L positions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.diagnostics import differing
from dprm.host.host import Host
from dprm.host.rollout import Rollout

PROBLEMS = 6
# Characters of all recordings of a card together.
ROOM = 100_000
TENTHS = 10
PHASES = 8
BINS = 8


@dataclass
class Recording:
    """One problem decoded under one order, position by position.

    Attributes:
        reward: what it earned.
        tokens: the final tokens. steps: the 1-based step of each reveal, 0 = given.
        confidence: of each token when it was revealed, in thousandths; `-` where it was given.
    """

    reward: float
    tokens: str
    steps: str
    confidence: str

    def whole(self, tokens: Collection[str]) -> bool:
        """Every position has one of `tokens`, a step, and a confidence if it was revealed."""
        steps, seen = self.steps.split(), self.confidence.split()
        return (
            len(self.tokens.split()) == len(steps) == len(seen)
            and set(self.tokens.split()) <= set(tokens)
            and all(step.isdecimal() for step in steps)
            and all(value.isdecimal() or (value == "-" and step == "0") for value, step in zip(seen, steps))
        )


@dataclass
class Replays:
    """A few problems under every order.

    Attributes:
        shown: the text of each token. columns: the width of the host's canvas where it has two dimensions.
        problems: one dictionary a problem, from orders to recordings; the reference comes first.
        end: the token after the end of a text, where the host has one.
    """

    shown: dict[str, str]
    columns: int | None
    problems: list[dict[str, Recording]]
    end: str | None = None

    @classmethod
    def read(cls, data: dict[str, Any]) -> Replays:
        """From the JSON of a card; ValueError names the problem and the order that are not whole."""
        problems = [{order: Recording(**run) for order, run in problem.items()} for problem in data["problems"]]
        for number, problem in enumerate(problems):
            if problem.keys() != problems[0].keys():
                raise ValueError(f"replay {number} has the orders {list(problem)}: expected {list(problems[0])}")
            for order, run in problem.items():
                if not run.whole(data["shown"].keys()):
                    raise ValueError(f"replay {number} of {order!r} does not say token, step and confidence everywhere")
        return cls(data["shown"], data["columns"], problems, data.get("end"))


@dataclass
class Parting:
    """How one order's decisions differ from the reference's, over all problems.

    Attributes:
        together: problems whose every decision so far was the reference's, at 0, 1, … 10 tenths of the decoding.
        reveals, moved: reveals by phase (down) and confidence (across), and those of them that the reference made at
            another step.
    """

    together: list[int]
    reveals: list[str]
    moved: list[str]


def replays(host: Host, rollouts: Mapping[str, Rollout], reference: str) -> Replays | None:
    """Recordings of the problems that `telling` names, as many as there is room for; None where there is none."""
    names = [reference, *(name for name in rollouts if name != reference)]
    rewards = {name: host.reward(rollout.scores) for name, rollout in rollouts.items()}
    problems: list[dict[str, Recording]] = []
    tokens: set[int] = set()
    room = ROOM
    for row in telling(rollouts, rewards, reference):
        problem = {name: recording(rollouts[name], float(rewards[name][row]), row) for name in names}
        room -= sum(len(run.tokens) + len(run.steps) + len(run.confidence) for run in problem.values())
        if room < 0:
            break
        problems.append(problem)
        tokens |= {token for name in names for token in rollouts[name].tokens[row].tolist()}
    shown = {str(token): host.show(token) for token in sorted(tokens)}
    end = None if not host.audit or host.audit.get("eot") is None else str(host.audit["eot"])
    return Replays(shown, host.columns, problems, end) if problems else None


def telling(
    rollouts: Mapping[str, Rollout], rewards: Mapping[str, Tensor], reference: str, count: int = PROBLEMS
) -> list[int]:
    """The problems worth looking at: where an order earns more than the reference, or less, in turns over the orders.

    What is missing is filled up with problems on which the final canvases differ, then with the first ones.
    """
    control = rewards[reference]
    others = [name for name in rollouts if name != reference]
    queues = [
        rows.nonzero()[:, 0].tolist() for name in others for rows in (rewards[name] > control, rewards[name] < control)
    ]
    turns = [row for turn in range(count) for queue in queues for row in queue[turn : turn + 1]]
    differ = [
        row for name in others for row in differing(rollouts[name], rollouts[reference]).nonzero()[:count, 0].tolist()
    ]
    ranked = [*turns, *differ, *range(len(control))]
    return list(dict.fromkeys(ranked))[:count]


def partings(rollouts: Mapping[str, Rollout], reference: str) -> dict[str, Parting]:
    """Every other order against the reference."""
    control = rollouts[reference]
    return {name: _parting(rollout, control) for name, rollout in rollouts.items() if name != reference}


def first_parting(steps: Tensor, control: Tensor) -> Tensor:
    """[N] the first step at which two step maps [N,L] reveal different positions; 0 where they never do."""
    earliest = torch.where(steps != control, torch.minimum(_late(steps), _late(control)), torch.iinfo(torch.int32).max)
    first = earliest.amin(1)
    return torch.where(first < torch.iinfo(torch.int32).max, first, 0)


def _late(steps: Tensor) -> Tensor:
    """Step maps in which a position that was never revealed comes last."""
    return torch.where(steps > 0, steps, torch.iinfo(torch.int32).max - 1).int()


def _parting(run: Rollout, control: Rollout) -> Parting:
    first = first_parting(run.step_map, control.step_map)
    total = torch.maximum(run.step_map.amax(1), control.step_map.amax(1)).clamp(min=1)
    # What was decided in common, as a share of all steps; 1 where all was.
    shared = torch.where(first > 0, (first - 1) / total, 1.0)
    together = [int((shared >= tenth / TENTHS).sum()) for tenth in range(TENTHS + 1)]
    revealed = run.step_map > 0
    phase = ((run.step_map - 1) * PHASES // total.unsqueeze(1)).clamp(0, PHASES - 1)
    level = (run.confidence.nan_to_num(0.0) * BINS).long().clamp(0, BINS - 1)
    cell = (phase * BINS + level)[revealed]
    moved = cell[(run.step_map != control.step_map)[revealed]]
    return Parting(together, _grid(cell), _grid(moved))


def _grid(cell: Tensor) -> list[str]:
    counts = torch.bincount(cell, minlength=PHASES * BINS).view(PHASES, BINS)
    return [_line(row) for row in counts.tolist()]


def recording(run: Rollout, reward: float, row: int) -> Recording:
    """One row of a rollout."""
    thousandths = (run.confidence[row] * 1000).round().tolist()
    return Recording(
        reward=round(reward, 6),
        tokens=_line(run.tokens[row].tolist()),
        steps=_line(run.step_map[row].tolist()),
        confidence=_line("-" if value != value else int(value) for value in thousandths),
    )


def _line(values: Any) -> str:
    return " ".join(map(str, values))
