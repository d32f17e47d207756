"""Trainings that a study compares: which there are, what can be set, and weights that differ in nothing but their name.

A host names its kind, `MaskLaws` or `PostTrainings`, as `TRAININGS`. Everything is checked before anything is trained;
what is trained stays in a folder, and a study that is killed goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from dprm.host.weights import sha256
from dprm.order import Policy
from dprm.order.files import write_whole
from dprm.order.rules import RULES
from dprm.train import checkpoint
from dprm.train.denoiser import save_weights
from dprm.train.parallel import processes
from dprm.train.recipe import Recipe
from dprm.train.task import Task
from dprm.train.train import LAWS, train
from dprm.train.training import differences

# The weights that several arms begin with.
START = "start"
# By what the law that learns is decoded besides signals: what it learned, under every rule.
LEARNED_ORDERS = tuple(f"learned {rule}" for rule in RULES)


@dataclass(frozen=True)
class Trained:
    """What a training gave.

    Attributes:
        path: of the weights. policy: of the order it learned; None where it learned none.
        facts: how it was made, for a card.
    """

    path: Path
    policy: Path | None
    facts: dict[str, Any]

    @classmethod
    def of(cls, path: Path, policy: Path | None, **facts: Any) -> Trained:
        """With the digests of both files among the facts."""
        facts["weights"] = sha256(path)[:16]
        if policy is not None:
            facts["policy"] = Policy.load(policy).digest
        return cls(path, policy, facts)


@dataclass(frozen=True, kw_only=True)
class Trainings:
    """What the trainings of all hosts have in common.

    Attributes:
        orders, widths, temperature, samples: how a study decodes after every training, unless it is told otherwise.
        parts: facts of a problem → the parts it counts in, besides "all"; the first one says where it stands.
        categories: facts of a problem → the categories it belongs to, which may overlap.
        steps: of every training; None: nothing is trained.
        tiny: a rehearsal, of a model of this width and one layer.
        fast: compile the models, in bfloat16 on a CPU too.
    """

    orders: tuple[str, ...]
    widths: tuple[int, ...] = (1, 2, 3)
    temperature: float | None = None
    samples: int = 1
    parts: Callable[[Any], Sequence[str]] | None = None
    categories: Callable[[Any], Sequence[str]] | None = None
    steps: int | None = None
    tiny: int = 0
    fast: bool = False

    # What `with_settings` may change, those of them that add arms and change none, and the weights that can be given.
    SETTINGS: ClassVar[tuple[str, ...]] = ()
    ADDED: ClassVar[tuple[str, ...]] = ()
    GIVEN: ClassVar[tuple[str, ...]] = ()

    def with_settings(self, text: str) -> Self:
        """The same with numbers such as `rate=1e-5,negative=0.7`; several of one name are joined, `phases=1+4+8`."""
        whole = ("int", "tuple[int, ...]")
        types = {field.name: int if field.type in whole else float for field in fields(self)}
        values: dict[str, Any] = {}
        for entry in filter(None, map(str.strip, text.split(","))):
            name, mark, number = entry.partition("=")
            if name not in self.SETTINGS or not mark:
                known = ", ".join(f"{known} (now {getattr(self, known)})" for known in self.SETTINGS)
                raise ValueError(f"set has {entry!r}: expected NAME=NUMBER with commas, of {known}")
            try:
                several = tuple(types[name](part) for part in number.split("+"))
                values[name] = several if isinstance(getattr(self, name), tuple) else types[name](number)
            except ValueError:
                kind = "a whole number" if types[name] is int else "a number"
                raise ValueError(f"set has {entry!r}: expected {kind}") from None
        return replace(self, **values)

    def rehearsal(self) -> Self:
        """The same in seconds; what comes out means nothing."""
        raise NotImplementedError

    def check(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> None:
        """Refuse what cannot work: unknown or missing weights, unequal arms, a folder that holds other trainings."""
        for name, path in weights.items():
            if name not in self.GIVEN:
                raise ValueError(f"weights has {name!r}: expected one of {', '.join(self.GIVEN)}")
            _, facts = checkpoint.load(path)
            if facts.get("host", host) != host:
                raise ValueError(f"{path} has host {facts['host']!r}: expected {host!r}")

    def trained(
        self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int, device: torch.device
    ) -> dict[str, Trained]:
        """The arms by name: of given weights, and trained in `folder` where they are missing."""
        raise NotImplementedError

    def _claim(self, folder: Path, host: str, seed: int, **more: Any) -> None:
        """A folder holds the trainings of one setting: refuse to go on in it with another."""
        claimed = (name for name in ("steps", "tiny", *self.SETTINGS) if name not in self.ADDED)
        settings = {name: getattr(self, name) for name in claimed}
        # Rounding is not the same.
        fast = {"fast": True} if self.fast else {}
        setting = json.loads(json.dumps({"host": host, "seed": seed, **settings, **fast, **more}))
        path = folder / "setting.json"
        if path.is_file() and (differing := differences(json.loads(path.read_text()), setting)):
            raise ValueError(f"{folder} holds another study: {'; '.join(differing)}; choose another folder (--work)")
        if processes().first:
            write_whole(path, json.dumps(setting, indent=1).encode())


@dataclass(frozen=True, kw_only=True)
class FromStart(Trainings):
    """Arms that begin with the same weights, which are given, or made at random for a rehearsal."""

    GIVEN = (START,)

    def check(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> None:
        super().check(host, task, weights, folder, seed)
        if START not in weights and not self.tiny:
            raise ValueError("weights has no start: give the file of the weights to begin with")
        start = sha256(weights[START])[:16] if START in weights else None
        self._claim(folder, host, seed, start=start, **self._claimed())

    def _claimed(self) -> dict[str, Any]:
        """What else a folder of these trainings belongs to."""
        return {}

    def _start(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> Path:
        """The file of the weights to begin with."""
        start = weights.get(START, folder / f"{START}.safetensors")
        if START not in weights:
            if processes().first:
                save_weights(start, task.build(task.shaped(self.tiny, 1), seed), {"host": host})
            processes().wait()
        return start


@dataclass(frozen=True, kw_only=True)
class MaskLaws(Trainings):
    """The laws of `train.LAWS`, from scratch.

    Attributes:
        rows, rate: sequences a step, peak learning rate. every: steps between two lessons of the law that learns.
        checked: held-out problems of an evaluation. few: data of a rehearsal, as `Task.data`; None: the usual.
    """

    rows: int = 1024
    rate: float = 1e-3
    every: int = 100
    checked: int = 256
    few: Callable[[int, torch.device, Path], Any] | None = None

    SETTINGS = ("rows", "rate", "every", "checked")
    GIVEN = tuple(LAWS)
    # What must agree between arms. Compilation and how often a checkpoint is written do not change what is learned.
    SHARED: ClassVar[tuple[str, ...]] = ("rows", "rate", "warm", "decay", "clip", "betas", "average", "seed")

    def rehearsal(self) -> MaskLaws:
        return replace(self, steps=10, rows=16, every=5, checked=4, tiny=32)

    def recipe(self, seed: int, device: torch.device) -> Recipe:
        """The numbers of every law."""
        compiled = self.fast or (device.type == "cuda" and not self.tiny)
        how: dict[str, Any] = {"rows": self.rows, "steps": self.steps, "rate": self.rate, "seed": seed}
        return Recipe(**how, compiled=compiled, half=self.fast)

    def check(self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int) -> None:
        super().check(host, task, weights, folder, seed)
        facts = {str(path): self._facts(law, path) for law, path in weights.items()}
        missing = [law for law in LAWS if law not in weights]
        if missing:
            if self.steps is None:
                raise ValueError(
                    f"weights has no arm {missing[0]}: give its file, or --steps, the number of steps to train it"
                )
            recipe = asdict(self.recipe(seed, torch.device("cpu")))
            model = task.shaped(*self._size()).to_dict()
            facts["these settings"] = {"steps": self.steps, "recipe": recipe, "model": model}
            self._claim(folder, host, seed)
        (first, mine), *others = ((name, json.loads(json.dumps(self._shared(told)))) for name, told in facts.items())
        for other, its in others:
            if differing := differences(mine, its):
                raise ValueError(f"arms must agree: {'; '.join(differing)}, with {first} there and {other} here")

    def trained(
        self, host: str, task: Task, weights: Mapping[str, Path], folder: Path, seed: int, device: torch.device
    ) -> dict[str, Trained]:
        arms = {}
        for law in LAWS:
            path = weights.get(law, folder / f"{law}.safetensors")
            policy = path.with_suffix(".dprm") if law == "dprm" else None
            if law not in weights and not self._finished(path, policy):
                train(
                    replace(task, data=self.few) if self.tiny and self.few is not None else task,
                    law,
                    self.recipe(seed, device),
                    out=path,
                    work=folder,
                    device=device,
                    width=self._size()[0],
                    depth=self._size()[1],
                    problems=self.checked,
                    every=self.every,
                )
                processes().wait()
            facts = self._shared(self._facts(law, path))
            facts["model"].pop("sides", None)
            if policy is not None and not policy.is_file():
                policy = None
            arms[law] = Trained.of(path, policy, law=law, **facts, canvases=facts["steps"] * facts["recipe"]["rows"])
        return arms

    def _size(self) -> tuple[int | None, int | None]:
        return (self.tiny, 1) if self.tiny else (None, None)

    def _finished(self, path: Path, policy: Path | None) -> bool:
        written = path.is_file() and (policy is None or policy.is_file())
        return written and bool(checkpoint.load(path)[1]["steps"] == self.steps)

    def _facts(self, law: str, path: Path) -> dict[str, Any]:
        """The header of a weights file as `train` writes it."""
        _, facts = checkpoint.load(path)
        missing = [name for name in ("law", "steps", "recipe", "model") if name not in facts]
        if missing:
            raise ValueError(f"{path} does not say its {', '.join(missing)}: expected weights of `dprm train`")
        if facts["law"] != law:
            raise ValueError(f"{path} has law {facts['law']!r}: expected {law!r}")
        return facts

    def _shared(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Of a header what all arms must agree in."""
        recipe = {name: facts["recipe"].get(name) for name in self.SHARED}
        # Old files do not say it.
        recipe["half"] = bool(facts["recipe"].get("half"))
        return {"steps": facts["steps"], "model": dict(facts["model"]), "recipe": recipe}
