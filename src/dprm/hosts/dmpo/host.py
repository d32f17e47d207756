"""The Countdown host: a model, its problems, its verifier, and the cells of its decisions."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from dprm.data.lines import read_lines
from dprm.data.stock import Stock, kept
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.controller import Controller
from dprm.host.difficulty import whole_range
from dprm.host.host import Host, Problems
from dprm.host.metrics import HELD_OUT, Metric
from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.problems import LARGEST_NUMBER, LARGEST_TARGET, CountdownData, generate, key
from dprm.hosts.dmpo.verifier import verify
from dprm.order import Reading
from dprm.train.denoiser import Denoiser
from dprm.train.posttraining import PostTrainings
from dprm.train.task import Task
from dprm.train.transformer import Config

# What a predicted token is, for the cells: a digit, an operator, `=`, a comma, the end.
_CLASSES = {**{str(d): 0 for d in range(10)}, **dict.fromkeys("+-*/", 1), "=": 2, ",": 3}
CLASSES = 5
# How many numbers the problems of a comparison have.
SIZES = (3, 4, 5, 6)


class Countdown(Host):
    """Problems of some sizes, how many numbers are given; what is ordered are the positions of the response.

    The aux state of a position is the class of its predicted token (5) × whether its left neighbour is visible (2).
    """

    name = "dmpo"
    domain = "Countdown: reach a target from given numbers"
    ordered = "response positions"
    metrics = (Metric("reward"), Metric("solved", role=HELD_OUT))
    audit: ClassVar[Mapping[str, Any] | None] = {
        "eot": canvas.EOT,
        "digits": tuple(range(10)),
        "mark": canvas.CHARACTERS.index("="),
    }
    paper: ClassVar[Controller] = Controller(shortlist=(8, 32, 4))

    def __init__(
        self,
        model: Model,
        sizes: tuple[int, ...] = SIZES,
        device: torch.device | str = "cpu",
        weights: str = "",
    ):
        self._model, self.sizes, self.device = model, sizes, torch.device(device)
        self.weights = weights
        self.decoding = Decoding(mask_id=canvas.MASK, states=2 * CLASSES, state_of=self.state_of)
        classes = [_CLASSES[character] for character in canvas.CHARACTERS]
        rest = [CLASSES - 1] * (canvas.VOCABULARY - len(classes))
        self._class = torch.tensor(classes + rest, dtype=torch.int32, device=device)

    def model(self) -> Model:
        return self._model

    @classmethod
    def question(cls, given: Sequence[int | None]) -> str:
        slots = [given[start : start + canvas.SLOT] for start in range(0, canvas.PROMPT, canvas.SLOT)]
        *numbers, target = ["".join(str(token) for token in slot if token is not None and token < 10) for slot in slots]
        return f"reach {target} from {', '.join(number for number in numbers if number)}"

    def at(self, difficulty: str) -> Countdown:
        """How many numbers are given, such as `5` or `3-6`."""
        other = copy.copy(self)
        other.sizes, other.variant = sizes_of(difficulty), difficulty
        return other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Every size equally often, one after the other: any first part is as mixed as the whole."""
        return self.answered(split, count, seed)[0]

    def answered(self, split: str, count: int, seed: int = 0) -> tuple[Problems, Tensor]:
        each = -(-count // len(self.sizes))
        made = [generate(split, each, size, seed=seed, distinct=True) for size in self.sizes]
        listed = [problem for turn in zip(*(part.listed() for part in made), strict=True) for problem in turn]
        tokens = torch.stack([part.tokens for part in made], 1).flatten(0, 1).long()
        return self.posed(listed[:count]), tokens[:count]

    def posed(self, listed: list[tuple[tuple[int, ...], int]]) -> Problems:
        """Problems of given (numbers, target)."""
        padded = [[*numbers, *[0] * (canvas.MOST_NUMBERS - len(numbers))] for numbers, _ in listed]
        keys = key(torch.tensor(padded).view(len(listed), -1), torch.tensor([target for _, target in listed]))
        return Problems(canvas.blank_canvases(listed).to(self.device), keys.to(self.device), listed)

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """Lines such as `{"numbers": [30, 100, 93], "target": 23}`, or instances of reasoning-gym's countdown."""
        listed, left_out = read_lines(path, lambda line: _problem(json.loads(line)))
        return self.posed(listed), left_out

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        answers = zip(problems.facts, tokens.tolist(), strict=True)
        rewards = [verify(numbers, target, canvas.read_response(row)).reward for (numbers, target), row in answers]
        return torch.tensor([[reward, reward == 1.0] for reward in rewards]).view(len(rewards), 2)

    def state_of(self, tokens: Tensor, reading: Reading) -> Tensor:
        """The cell state of every position of canvases [B,L]."""
        visible = (tokens != canvas.MASK).int()
        return self._class[reading.tokens] * 2 + visible.roll(1, 1)

    def show(self, token: int) -> str:
        if token < len(canvas.CHARACTERS):
            return canvas.CHARACTERS[token]
        return {canvas.BLANK: " ", canvas.EOT: "□", canvas.MASK: "·"}[token]


def sizes_of(difficulty: str) -> tuple[int, ...]:
    """How many numbers are given: the sizes of `5` or `3-6`."""
    first, last = whole_range(difficulty, "how many numbers are given", 2, canvas.MOST_NUMBERS)
    return tuple(range(first, last + 1))


def _problem(entry: dict[str, Any]) -> tuple[tuple[int, ...], int]:
    """A checked (numbers, target), numbers largest first."""
    if isinstance(entry, dict):
        entry = entry.get("metadata", entry)
    if not isinstance(entry, dict) or not {"numbers", "target"} <= entry.keys():
        raise ValueError('expected {"numbers": [...], "target": ...}')
    numbers, target = entry["numbers"], entry["target"]
    if not isinstance(numbers, list) or not 2 <= len(numbers) <= canvas.MOST_NUMBERS:
        raise ValueError(f"numbers is {numbers!r}: expected 2 to {canvas.MOST_NUMBERS} of them")
    for name, value, most in [*(("a number", n, LARGEST_NUMBER) for n in numbers), ("target", target, LARGEST_TARGET)]:
        if type(value) is not int or not 1 <= value <= most:
            raise ValueError(f"{name} is {value!r}: expected a whole number from 1 to {most}")
    return tuple(sorted(numbers, reverse=True)), target


_COUNTS = {2: 100_000, 3: 1_000_000, 4: 4_000_000, 5: 4_000_000, 6: 3_000_000}


def _data(seed: int, device: torch.device, work: Path) -> Stock:
    """Generated in minutes, then kept beside the training: a gigabyte."""
    tokens = kept(
        work / f"dmpo-data-{seed}.safetensors",
        lambda: CountdownData(_COUNTS, seed, device).tokens.cpu(),
        counts=list(_COUNTS.items()),
        seed=seed,
        problems=problems,
        canvas=canvas,
    )
    return Stock(tokens.to(device), canvas.answer_positions(1)[0], canvas.MASK, seed, device)


TASK = Task(
    config=Config(canvas.VOCABULARY, width=192, depth=6, heads=6, sides=canvas.SIDES),
    data=_data,
    wrap=lambda model, device: Countdown(Denoiser(model), device=device),
)


def parts(facts: tuple[tuple[int, ...], int]) -> tuple[str, ...]:
    """The size of a problem, and whether it is hard: more numbers than post-training ever asked for."""
    size = len(facts[0])
    return (str(size), "hard") if size >= 5 else (str(size),)


TRAININGS = PostTrainings(
    orders=("confidence", "empty shortlist_top_m", "learned shortlist_top_m", "learned top_m"),
    widths=(2,),
    temperature=1.0,
    samples=32,
    difficulty="3-4",
    parts=parts,
)
