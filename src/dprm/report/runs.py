"""What `dprm report` can be given: a comparison, a study, or a policy, told apart by what is in the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprm.evaluate import card, study
from dprm.evaluate.card import Card
from dprm.evaluate.cards import kind_of
from dprm.evaluate.study import Study
from dprm.order import Policy
from dprm.order.files import read_tensors
from dprm.report.visible import all_visible, visible


@dataclass(frozen=True)
class Learned:
    """A policy file: its header for people, and the policy itself."""

    header: dict[str, Any]
    policy: Policy


@dataclass(frozen=True)
class Run:
    """One file of the report; all its text is visible."""

    name: str
    content: Card | Study | Learned


def read_run(path: Path) -> Run:
    """Read a file of any of the three kinds; ValueError says what is wrong with any other."""
    with path.open("rb") as file:
        text = file.read(1) == b"{"
    return Run(visible(path.stem), _card(path) if text else _learned(path))


def _card(path: Path) -> Card | Study:
    try:
        data = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    kind = kind_of(data)
    if kind == study.KIND:
        trainings: Study = all_visible(Study.load(path))
        return trainings
    if kind != card.KIND:
        raise ValueError(f"{path} is neither a comparison (`dprm compare --out`) nor a study (`dprm study --out`)")
    comparison: Card = all_visible(Card.load(path))
    return comparison


def _learned(path: Path) -> Learned:
    _, header = read_tensors(path, "dprm.policy")
    return Learned(all_visible(header), Policy.load(path))
