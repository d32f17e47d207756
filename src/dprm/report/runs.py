"""What `dprm report` can be given: a comparison, a study, or a policy, told apart by what is in the file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprm.evaluate import card, study
from dprm.evaluate.card import Card
from dprm.evaluate.cards import kind_of
from dprm.evaluate.outcomes import SUFFIX
from dprm.evaluate.study import Study
from dprm.order import Policy
from dprm.order.files import read_whole
from dprm.report.names import with_learned_names
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


class OtherFile(ValueError):
    """A readable file that a page has no place for, such as the account of a fit."""


def read_runs(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """The runs of some files, and one line for each that holds something else and is left out.

    Raises:
        ValueError: a file that cannot be read, or nothing to show in any of them.
    """
    runs, left_out = list[Run](), list[str]()
    for path in paths:
        try:
            runs.append(read_run(path))
        except OtherFile as error:
            left_out.append(str(error))
    if not runs:
        raise ValueError("; ".join(left_out))
    return runs, left_out


def read_run(path: Path) -> Run:
    """Read a file of any of the three kinds; ValueError says what is wrong with any other."""
    if path.name.endswith(SUFFIX):
        raise OtherFile(f"{path} holds the outcomes of a card: give the card itself")
    with path.open("rb") as file:
        text = file.read(64).lstrip()[:1] in (b"{", b"[")
    return Run(visible(path.stem), _card(path) if text else _learned(path))


def _card(path: Path) -> Card | Study:
    try:
        data = json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    kind = kind_of(data)
    if kind == study.KIND:
        trainings: Study = all_visible(Study.load(path))
        return trainings
    if kind != card.KIND:
        raise OtherFile(f"{path} is neither a comparison (`dprm compare --out`) nor a study (`dprm study --out`)")
    comparison: Card = all_visible(Card.load(path))
    return with_learned_names(comparison)


def _learned(path: Path) -> Learned:
    policy = Policy.load(path)
    return Learned(all_visible({**policy.header, "digest": policy.digest}), policy)
