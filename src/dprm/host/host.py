"""What a host is: a model, problems, a judge, and its own decisions about decoding.

Everything that fits, compares or shows works through this and knows nothing else of a host.
Shapes: N problems, L positions, J metrics.
"""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model
from dprm.decode.rows import Rows, rows_at, rows_count
from dprm.host.controller import Controller
from dprm.host.metrics import SET, Metric, Preference, checked_scores, checked_set_scores
from dprm.order.checks import check_count
from dprm.order.noise import mix_rows

if TYPE_CHECKING:
    from dprm.host.rollout import Rollout

SPLITS = ("train", "fit", "select", "test")


@dataclass(frozen=True)
class Problems:
    """Problems to decode.

    Attributes:
        canvas: [N,L] int64, masked where to reveal.
        key: [N] int64 ≥ 0, the identity of each problem: the same problem has the same key in every split and run.
        facts: what the host needs to judge each answer.
        context: what the model needs besides the canvas, see `decode.rows`.
        group: [N] int64, problems that belong together (masks of one reaction, samples of one prompt): folds, splits
            and intervals keep them together. None: every problem by itself.
    """

    canvas: Tensor
    key: Tensor
    facts: Sequence[Any]
    context: Rows | None = None
    group: Tensor | None = None

    def __len__(self) -> int:
        return len(self.key)

    def __getitem__(self, rows: slice | Tensor) -> Problems:
        """Some of the problems, by slice or by index [n], which may repeat."""
        facts = [self.facts[row] for row in rows.tolist()] if isinstance(rows, Tensor) else self.facts[rows]
        group = None if self.group is None else self.group[rows]
        return Problems(self.canvas[rows], self.key[rows], facts, rows_at(self.context, rows), group)

    @property
    def groups(self) -> Tensor:
        """[N] int64, the group of every problem."""
        return self.key if self.group is None else self.group

    def copies(self, samples: int) -> Problems:
        """Every problem `samples` times, one after the other, each copy with random numbers of its own."""
        check_count("samples", samples, 1)
        rows = torch.arange(len(self), device=self.key.device).repeat_interleave(samples)
        number = torch.arange(samples, device=self.key.device).repeat(len(self))
        key = mix_rows(mix_rows(self.key[rows], 1) + number, 2) & (2**62 - 1)
        return replace(self[rows.cpu()], key=key, group=self.groups[rows])

    def check(self, what: str = "problems") -> None:
        """Raise ValueError where something does not fit or a problem comes twice, by name, row and value."""
        if self.canvas.dim() != 2 or self.canvas.dtype != torch.int64:
            got = f"{self.canvas.dtype} {tuple(self.canvas.shape)}"
            raise ValueError(f"{what}.canvas is {got}: expected int64 tokens [problems, positions]")
        rows = {"key": len(self.key), "facts": len(self.facts), "group": len(self.groups)}
        rows |= {} if self.context is None else {"context": rows_count(self.context)}
        for name, count in rows.items():
            if count != len(self.canvas):
                raise ValueError(f"{what}.{name} has {count} rows for {len(self.canvas)} canvases")
        if self.key.dim() != 1 or self.key.dtype != torch.int64:
            raise ValueError(f"{what}.key is {self.key.dtype} {tuple(self.key.shape)}: expected int64 [problems]")
        first: dict[int, int] = {}
        for row, key in enumerate(self.key.tolist()):
            if key < 0:
                raise ValueError(f"{what}.key[row {row}] is {key}: expected at least 0")
            if first.setdefault(key, row) != row:
                remedy = "a problem may come once; its facts can tell it from others of the same canvas"
                raise ValueError(f"{what}.key[row {row}] is {key}, that of row {first[key]} again: {remedy}")

    @property
    def digest(self) -> str:
        """Names this set of problems, whatever their order."""
        return hashlib.sha256(self.key.sort().values.cpu().numpy().tobytes()).hexdigest()[:16]


class Host(ABC):
    """A masked diffusion model at work on one kind of problem.

    Attributes:
        name, domain: for people and commands. ordered: what the order decides about.
        decoding: the host's own decoding.
        metrics: what answers are judged by. preference: which of it is the terminal reward; preferences: those that
            have a name. endings: of the files that `write` writes.
        paired: answers of two orders to one problem are compared; False where samples belong to the order, not to a
            problem, as with generated molecules.
        columns: width of the canvas where it has two dimensions, for showing it.
        weights: digest of the model's weights; empty where nobody knows it, and the model is then probed.
        variant: what `at` chose, for people; empty for the host as it is.
        way: makes the way in which answers are compared under an order, such as a search; None: `Decode`.
        ways: further ones that a comparison of this host shows, by name.
        design: the way in which `dprm generate` answers unless a policy is given; None: `Decode`.
        success: the metric whose highest value is a success; without it, the terminal reward's is.
        paper: the controller that the paper has on this host, or on one of its kind.
        audit: what an audit of reveals is told of the text: its `eot`, its `digits`, the `mark` before a final answer,
            as far as there are any; None: an order has no places that mean something.
    """

    name: str
    domain: str = ""
    ordered: str = "positions"
    decoding: Decoding
    metrics: tuple[Metric, ...] = (Metric("reward"),)
    preference: Preference = Preference()
    preferences: ClassVar[Mapping[str, Preference]] = {}
    endings: ClassVar[tuple[str, ...]] = ()
    paired: bool = True
    columns: int | None = None
    weights: str = ""
    variant: str = ""
    way: Callable[[Any], Any] | None = None
    ways: Mapping[str, Any] = MappingProxyType({})
    design: ClassVar[Any] = None
    success: ClassVar[str] = "solved"
    audit: ClassVar[Mapping[str, Any] | None] = None
    paper: ClassVar[Controller] = Controller()

    @abstractmethod
    def model(self) -> Model:
        """Tokens [B,L] → logits [B,L,V], or what the reader reads; called with the context, if there is one."""

    @abstractmethod
    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """`count` distinct problems of a split: train, fit, select or test."""

    @abstractmethod
    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        """[N,J] scores of finished canvases [N,L], a column for every metric that is not of the set; [N] for one."""

    def answered(self, split: str, count: int, seed: int = 0) -> tuple[Problems, Tensor]:
        """Problems of a split and the answers [N,L] that they were made with, token by token."""
        raise ValueError(f"host {self.name} knows no answers: what is right there is not one text")

    def judge_set(self, problems: Problems, tokens: Tensor) -> dict[str, float]:
        """The metrics of all outputs together, by name."""
        return {}

    def set_terms(self, problems: Problems, tokens: Tensor) -> Tensor | None:
        """[N,F] terms of every output of whose means alone the metrics of all outputs are made, see `set_of`: outputs
        can then be resampled. None: they are not."""
        return None

    def set_of(self, means: Tensor) -> dict[str, Tensor]:
        """The metrics of all outputs together, each [R], by name, of means [R,F] of `set_terms`."""
        raise NotImplementedError

    def at(self, difficulty: str) -> Self:
        """The same host with problems of another difficulty, such as `5` or `22-25`; what that means is its own."""
        raise ValueError(f"difficulty is {difficulty!r}: the problems of host {self.name} have no difficulty to choose")

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """A person's own problems from a text file, and one line for each that does not fit and is left out."""
        raise ValueError(f"host {self.name} takes no problem files")

    def read_one(self, text: str) -> Problems:
        """A person's own problem from a few words."""
        raise ValueError(f"host {self.name} takes no problem in words, and was given {text!r}")

    def examples(self, problems: Problems, tokens: Tensor) -> list[str]:
        """The first few answers as people of the field read them, for a card."""
        return []

    def parts(self, fact: Any) -> Sequence[str]:
        """The parts that a problem counts in, such as the format of a question, for a comparison part by part."""
        return ()

    def gallery(self, problems: Problems, answers: Mapping[str, Rollout]) -> list[str]:
        """Problems with the answers of several orders to each and the order of their reveals, a line a problem; as
        `examples`, such lines are drawn where the host can draw. Empty: the host shows none."""
        return []

    @classmethod
    def question(cls, given: Sequence[int | None]) -> str:
        """What a problem asks, in words, from its given tokens, None where nothing is given; empty: it shows itself."""
        return ""

    def write(self, path: Path, problems: Problems, rollout: Rollout) -> list[str]:
        """Write answers as people of the field open them; returns a summary, a line each."""
        raise ValueError(f"host {self.name} writes no files")

    def show(self, token: int) -> str:
        """One token as people read it; the mask as `·`."""
        return "·" if token == self.decoding.mask_id else f"{token} "

    # ---- what follows from these ------------------------------------------------------------------------------------

    def scores(self, problems: Problems, tokens: Tensor) -> Tensor:
        """[N,J] float32: what `judge` gives, checked in shape and range."""
        return checked_scores(self.judge(problems, tokens), len(problems), self.metrics)

    def set_scores(self, problems: Problems, tokens: Tensor) -> dict[str, float]:
        """What `judge_set` gives, checked in range."""
        return checked_set_scores(self.judge_set(problems, tokens), self.metrics)

    @property
    def judged(self) -> tuple[Metric, ...]:
        """The metrics of an answer, in the order of the columns of `scores`."""
        return tuple(metric for metric in self.metrics if metric.role != SET)

    def reward(self, scores: Tensor) -> Tensor:
        """[N] float64, the terminal reward of scores [N,J]."""
        return self.preference.reward(scores, self.judged)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest terminal reward."""
        return self.preference.range(self.judged)

    def with_decoding(self, **changes: Any) -> Self:
        """The same host with other fields of its `Decoding`."""
        other = copy.copy(self)
        other.decoding = replace(self.decoding, reader=changes.pop("reader", self._own_reader()), **changes)
        return other

    def _own_reader(self) -> Any:
        """The reader, if it is not the one that follows from the decoding."""
        own = replace(self.decoding, reader=None)
        return None if own.reader == self.decoding.reader else self.decoding.reader

    def with_preference(self, preference: Preference | Mapping[str, float]) -> Self:
        """The same host with another terminal reward."""
        other = copy.copy(self)
        other.preference = preference if isinstance(preference, Preference) else Preference(preference)
        other.preference.range(self.judged)
        return other
