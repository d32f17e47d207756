"""The word-problem host: a model, its problems, its verifier, and the cells of its decisions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.controller import Controller
from dprm.host.difficulty import whole_range
from dprm.host.host import Host, Problems
from dprm.host.metrics import HELD_OUT, Metric
from dprm.hosts.puma_words import words
from dprm.hosts.puma_words.cells import STATES, cell_state
from dprm.hosts.puma_words.problems import FEWEST_STEPS, MOST_STEPS, WordData, generate, key
from dprm.hosts.puma_words.verifier import verify
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import LEARNED_ORDERS, MaskLaws


class WordProblems(Host):
    """Problems of `steps` steps; what is ordered are the positions of the answer."""

    name = "puma_words"
    domain = "word problems with step-by-step answers"
    ordered = "answer positions"
    metrics = (Metric("reward"), Metric("solved", role=HELD_OUT))
    audit: ClassVar[Mapping[str, Any] | None] = {"eot": words.EOT, "digits": words.DIGITS, "mark": words.FINAL}
    paper: ClassVar[Controller] = Controller(phases=1, warm=0.001, switch=0.03, decoding_ready=16.0, rule="soft_bon")
    decoding = Decoding(mask_id=words.MASK, states=STATES, state_of=cell_state)

    def __init__(self, model: Model, steps: int = 3, device: torch.device | str = "cpu", weights: str = ""):
        self._model, self.steps, self.device = model, steps, torch.device(device)
        self.weights = weights

    def model(self) -> Model:
        return self._model

    def at(self, difficulty: str) -> WordProblems:
        """How many steps a solution has, such as `4`."""
        first, last = whole_range(difficulty, "how many steps a solution has", FEWEST_STEPS, MOST_STEPS)
        if first != last:
            raise ValueError(f"difficulty is {difficulty!r}: expected one number of steps, such as {last}")
        other = copy.copy(self)
        other.steps, other.variant = first, difficulty
        return other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        return self.answered(split, count, seed)[0]

    def answered(self, split: str, count: int, seed: int = 0) -> tuple[Problems, Tensor]:
        made = generate(split, count, self.steps, seed=seed, distinct=True)
        canvas = words.blank_canvases(made.tokens)
        posed = Problems(canvas.to(self.device), key(made.steps).to(self.device), made.listed())
        return posed, made.tokens.long()

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        answers = zip(problems.facts, tokens.tolist(), strict=True)
        rewards = [verify(numbers, gold, words.read_answer(row)).reward for (numbers, gold), row in answers]
        return torch.tensor([[reward, reward == 1.0] for reward in rewards]).view(len(rewards), 2)

    def show(self, token: int) -> str:
        if token < len(words.CHARACTERS):
            return words.CHARACTERS[token]
        marks = {words.BLANK: " ", words.EOT: "□", words.MASK: "·"}
        return marks[token] if token in marks else words.WORDS[token - len(words.CHARACTERS)]


def _data(seed: int, device: torch.device, work: Path, share: float = 1.0) -> WordData:
    counts = {2: 300_000, 3: 500_000, 4: 700_000}
    return WordData({steps: int(share * count) for steps, count in counts.items()}, seed, device)


TASK = Task(
    config=words.word_config(width=192, depth=6),
    data=_data,
    wrap=lambda model, device: WordProblems(Denoiser(model), device=device),
)


def categories(facts: tuple[tuple[int, ...], int]) -> tuple[str, ...]:
    """What kind of a problem it is: how many numbers its text has, and how large its answer is."""
    numbers, answer = facts
    return ("many numbers" if len(numbers) >= 5 else "few numbers", "large answer" if answer >= 100 else "small answer")


TRAININGS = MaskLaws(
    orders=("random", "confidence", "entropy", "uncertainty", *LEARNED_ORDERS),
    few=partial(_data, share=0.001),
    categories=categories,
)
