"""The training arms of a PUMA study: weights of the three mask laws that differ in nothing but the law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dprm.host.weights import sha256
from dprm.train import checkpoint
from dprm.train.recipe import Recipe
from dprm.train.train import LAWS, train

# What must agree between arms. Compilation and how often a checkpoint is written do not change what is learned.
SHARED = ("rows", "rate", "warm", "decay", "clip", "betas", "average", "seed")


@dataclass(frozen=True)
class TrainedArm:
    """Weights of one law, with the facts of their header.

    Attributes:
        digest: of the file. facts: host, law, steps, recipe, model, scores.
    """

    path: Path
    digest: str
    facts: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> TrainedArm:
        """The arm of a weights file as `dprm train` writes it."""
        _, facts = checkpoint.load(path)
        missing = [name for name in ("host", "law", "steps", "recipe", "model") if name not in facts]
        if missing:
            raise ValueError(f"{path} does not say its {', '.join(missing)}: expected weights of `dprm train`")
        return cls(path, sha256(path)[:16], facts)

    def account(self) -> dict[str, Any]:
        """What a card says of the arm."""
        recipe = {name: self.facts["recipe"].get(name) for name in SHARED}
        model = {name: value for name, value in self.facts["model"].items() if name != "sides"}
        told = {"law": self.facts["law"], "steps": self.facts["steps"], "recipe": recipe, "model": model}
        return {**told, "canvases": self.facts["steps"] * recipe["rows"], "weights": self.digest}


def trained_arms(host: str, weights: Mapping[str, Path]) -> dict[str, TrainedArm]:
    """The arms of given files, by law.

    Raises:
        ValueError: where two arms differ in more than their law, naming in what.
    """
    arms = {law: TrainedArm.read(weights[law]) for law in LAWS if law in weights}
    for law, arm in arms.items():
        for name, expected in (("host", host), ("law", law)):
            if arm.facts[name] != expected:
                raise ValueError(f"{arm.path} has {name} {arm.facts[name]!r}: expected {expected!r}")
    first, *others = arms.values()
    for other in others:
        for name, mine, its in _compared(first, other):
            if mine != its:
                raise ValueError(f"{name} is {mine} in {first.path} and {its} in {other.path}: arms must agree in it")
    return arms


def _compared(one: TrainedArm, other: TrainedArm) -> list[tuple[str, Any, Any]]:
    """(name, of one, of the other) of everything that must agree."""
    plain = [(name, one.facts[name], other.facts[name]) for name in ("steps", "model")]
    recipes = [(name, one.facts["recipe"].get(name), other.facts["recipe"].get(name)) for name in SHARED]
    return plain + recipes


def train_missing(
    host: str,
    weights: Mapping[str, Path],
    recipe: Recipe | None,
    folder: Path,
    device: torch.device | str = "cpu",
    width: int | None = None,
    depth: int | None = None,
    problems: int = 256,
) -> dict[str, Path]:
    """Weights of every law: the given ones, and those trained here, in `folder`, where they are missing.

    Args:
        recipe: how to train; None: nothing may be missing.
        width, depth: of the model; None: the host's own. problems: held-out ones of an evaluation.
    """
    for law in weights:
        if law not in LAWS:
            raise ValueError(f"weights has an arm {law!r}: expected one of {', '.join(LAWS)}")
    files = dict(weights)
    for law in LAWS:
        if law in files:
            continue
        if recipe is None:
            raise ValueError(f"weights has no arm {law}: give its file, or a number of steps to train it")
        # A folder for every recipe: a checkpoint is only gone on with by the training that wrote it.
        own = folder / f"{recipe.steps}x{recipe.rows}-seed{recipe.seed}"
        files[law] = own / f"{law}.safetensors"
        if not _finished(files[law], recipe):
            train(
                host,
                law,
                recipe,
                out=files[law],
                work=own,
                device=device,
                width=width,
                depth=depth,
                problems=problems,
            )
    return files


def _finished(path: Path, recipe: Recipe) -> bool:
    """Whether the training that writes this file has come to its end."""
    return path.is_file() and bool(TrainedArm.read(path).facts["steps"] == recipe.steps)
