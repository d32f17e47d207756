"""A host with a person's own problems, or judged by a person's own reward."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from dprm.data.lines import nothing_left
from dprm.host.finding import attribute
from dprm.host.host import Host, Problems
from dprm.host.judging import Judge
from dprm.host.metrics import Metric, Preference
from dprm.order.noise import mix_rows

Some = TypeVar("Some", bound=Host)
# Of four equal parts of a file, which belong to a split.
_PARTS = {"fit": (0, 1), "select": (2,), "test": (3,)}


def with_reward(host: Some, where: str, batched: bool = False) -> Some:
    """The same host, judged by the function that `package.module:name` or `path.py:name` names.

    Args:
        where: a function (tokens [L], facts) → number in [0, 1].
        batched: it is one of (tokens [N,L], list of facts) → [N].
    """
    function = attribute(where)
    if not callable(function):
        raise ValueError(f"reward {where!r} is {type(function).__name__}: expected a function of (tokens, facts)")
    other = copy.copy(host)
    other.metrics, other.preference = (Metric("reward"),), Preference()
    other.judge = Judge(function, f"reward {where}", batched)  # type: ignore[method-assign]
    return other


def own_problems(host: Host, path: Path) -> tuple[Problems, list[str]]:
    """A person's own problems, checked, and one line for each that does not fit and is left out."""
    problems, left_out = host.read_problems(path)
    if not len(problems):
        raise nothing_left(path, left_out)
    problems.check(str(path))
    return problems, left_out


def with_problems(host: Some, path: Path) -> tuple[Some, list[str]]:
    """The same host with the problems of a file, split by their group: half fit, a quarter each select and test.

    Returns:
        the host, and one line for each problem that does not fit and is left out.
    """
    problems, left_out = own_problems(host, path)
    other = copy.copy(host)
    other.problems = _Filed(problems, path)  # type: ignore[method-assign]
    other.variant = path.name
    return other, left_out


def divided(problems: Problems) -> dict[str, Tensor]:
    """By split, the rows [n] of its problems: half fit, a quarter each select and test, by a hash of their group."""
    part = mix_rows(problems.groups.cpu(), 5) % 4
    return {split: torch.isin(part, torch.tensor(parts)).nonzero().flatten() for split, parts in _PARTS.items()}


class _Filed:
    """`Host.problems` from a file."""

    def __init__(self, problems: Problems, path: Path):
        self.stock, self.path = problems, path

    def __call__(self, split: str, count: int, seed: int = 0) -> Problems:
        if split not in _PARTS:
            raise ValueError(f"split is {split!r}: problems of a file have {', '.join(_PARTS)}")
        rows = divided(self.stock)[split]
        if not len(rows):
            raise ValueError(f"{self.path} has too few problems: none of {len(self.stock)} belongs to {split}")
        return self.stock[rows[:count]]
