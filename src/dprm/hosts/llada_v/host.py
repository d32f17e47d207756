"""The picture-question host: scenes, questions about them, and the cells of its decisions.

    aux = position + 4·(EOT + 2·format)   ∈ 0 … 23
    position  of the slot, 0 … 3
    EOT       1 if the predicted token is EOT
    format    of the question: 0 choice, 1 count, 2 open; told from its words alone

Shapes: N problems, B rows, L = 20 positions.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.scenes import CELLS, Scene, drawn, grids, pixels
from dprm.data.splits import SPLITS
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.host import Host, Problems
from dprm.host.metrics import HELD_OUT, Metric
from dprm.hosts.llada_v import cards, model, words
from dprm.hosts.llada_v.questions import CHOICE, COUNT, FAMILIES, FORMATS, OPEN, Question, ask
from dprm.order import Reading
from dprm.order.noise import mix
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import MaskLaws

if TYPE_CHECKING:
    from dprm.host.rollout import Rollout

SIDE = 32
STATES = len(FORMATS) * 2 * words.SLOTS
# Questions that are drawn about a scene before it is left out.
TRIES = 4
# Scenes of the training, and questions about each of them; every so many is about relations.
SCENES, QUESTIONS, RELATIONS = 60_000, 3, 3


def cell_state(canvas: Tensor, reading: Reading) -> Tensor:
    """[B,L] int64 in 0 … 23, the state of every slot of canvases [B,L]."""
    place = (torch.arange(words.LENGTH, device=canvas.device) - words.QUESTION).clamp(min=0)
    return place + words.SLOTS * ((reading.tokens == words.EOT).long() + 2 * format_of(canvas).unsqueeze(1))


def format_of(canvas: Tensor) -> Tensor:
    """[B] int64, the format of the question of canvases [B,L]: one with lettered options, one that says how many."""
    question = canvas[:, : words.QUESTION]
    lettered = (question == words.TOKEN["A"]).any(1)
    many = (question == words.TOKEN["many"]).any(1)
    return torch.where(lettered, CHOICE, torch.where(many, COUNT, OPEN))


@dataclass(frozen=True)
class Posed:
    """A question about a scene.

    Attributes:
        grid: the scene, see `scenes.grids`.
    """

    grid: tuple[int, ...]
    question: Question


def posed(split: str, count: int, seed: int, family: str) -> list[Posed]:
    """`count` questions of a family, each about another scene of the split, the formats in turn."""
    found: list[Posed] = []
    size = 8 * count + 64
    for row, grid in enumerate(grids(split, size, seed).tolist()):
        question = asked(Scene.of(torch.tensor(grid)), family, len(found) % len(FORMATS), split, seed, row)
        if question is not None:
            found.append(Posed(tuple(grid), question))
        if len(found) == count:
            return found
    raise ValueError(f"count is {count}: only {len(found)} of {size} scenes have a question of {family}")


def asked(scene: Scene, family: str, form: int, split: str, *seed: int) -> Question | None:
    """A question of a format about a scene; None where none of the first few that are drawn can be asked about it."""
    draw = Random(mix(*seed, SPLITS.index(split), FAMILIES.index(family)))
    tried = (ask(scene, family, form, draw, test=split == "test") for _ in range(TRIES))
    return next((question for question in tried if question is not None), None)


class PictureQuestions(Host):
    """Questions of one family about scenes; what is ordered are the four slots of the answer.

    The reward is a normalised match with any answer that counts; `literal` is the match without the last step of the
    normalisation, in which `no`, `none` and `zero` are 0.
    """

    name = "llada_v"
    domain = "questions about pictures of scenes"
    ordered = "answer slots"
    metrics = (Metric("match"), Metric("literal", role=HELD_OUT))
    success: ClassVar[str] = "match"
    audit: ClassVar[Mapping[str, Any] | None] = {"eot": words.EOT, "digits": words.NUMBERS}
    decoding = Decoding(mask_id=words.MASK, forbid=(words.BLANK,), states=STATES, state_of=cell_state)

    def __init__(self, model: Model, device: torch.device | str = "cpu", family: str = FAMILIES[0]):
        self._model, self.device, self.family = model, torch.device(device), family

    def model(self) -> Model:
        return self._model

    def at(self, difficulty: str) -> PictureQuestions:
        """A family of questions: `things` or `relations`."""
        if difficulty not in FAMILIES:
            raise ValueError(f"difficulty is {difficulty!r}: expected one of {', '.join(FAMILIES)}")
        other = copy.copy(self)
        other.family, other.variant = difficulty, difficulty
        return other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """One question about every scene, the formats in turn."""
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
        facts = posed(split, count, seed, self.family)
        canvas = torch.tensor([words.encoded(fact.question.words) for fact in facts]).view(-1, words.LENGTH)
        grid = torch.tensor([fact.grid for fact in facts]).view(-1, CELLS**2)
        key = row_hash(torch.cat([grid, canvas[:, : words.QUESTION]], 1))
        pictures = pixels(drawn(grid, SIDE))
        return Problems(canvas.to(self.device), key.to(self.device), facts, pictures.to(self.device))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        answers = map(words.answered, tokens.tolist())
        rows = [(fact.question, answer) for fact, answer in zip(problems.facts, answers, strict=True)]
        scores = [[asked.matches(said), asked.matches(said, zero=False)] for asked, said in rows]
        return torch.tensor(scores, dtype=torch.float32).view(-1, 2)

    def parts(self, fact: Posed) -> tuple[str, ...]:
        """Its format; of counts also what kind of count it is; and whether its words were kept for the test."""
        question = fact.question
        kind = (f"count, {question.kind}",) if question.format == COUNT else ()
        return (FORMATS[question.format], *kind, *(("words of the test",) if question.unseen else ()))

    def gallery(self, problems: Problems, answers: Mapping[str, Rollout]) -> list[str]:
        """Question cards of the counts."""
        rows = torch.tensor([row for row, fact in enumerate(problems.facts) if fact.question.format == COUNT])
        grids_shown = [problems.facts[row].grid for row in rows.tolist()]
        return cards.lines(grids_shown, {name: run[rows] for name, run in answers.items()}) if len(rows) else []

    def show(self, token: int) -> str:
        return words.WORDS[token] + " "


class PictureData:
    """Training sequences with their pictures, from a stock of questions about training scenes (see `masks.Data`).

    Args:
        scenes: how many; there are `QUESTIONS` about each, every `RELATIONS`-th about relations.
    """

    mask_id = words.MASK

    def __init__(self, scenes: int, seed: int = 0, device: torch.device | str = "cpu"):
        self.seed, self.device = seed, device
        self._grid = grids("train", scenes, seed).to(device)
        scene, tokens = [], []
        for row, grid in enumerate(self._grid):
            shown = Scene.of(grid)
            for turn in range(QUESTIONS):
                number = row * QUESTIONS + turn
                family = FAMILIES[number % RELATIONS == 0]
                question = asked(shown, family, (row + turn) % len(FORMATS), "train", seed, number)
                if question is not None:
                    scene.append(row)
                    tokens.append(words.encoded(question.words, question.reference))
        self._scene = torch.tensor(scene, device=device)
        self._tokens = torch.tensor(tokens, dtype=torch.uint8, device=device)
        self._answer = words.slots().to(device)

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        return self._tokens[self._index(step, rows)].long(), self._answer.expand(rows, -1)

    def context(self, step: int, rows: int) -> Tensor:
        """[B,S,S,3] the pictures of a batch."""
        return pixels(drawn(self._grid[self._scene[self._index(step, rows)]], SIDE))

    def _index(self, step: int, rows: int) -> Tensor:
        return Draws("questions", self.seed, step, device=self.device).below(len(self._tokens), rows)


def _data(seed: int, device: torch.device, work: Path, scenes: int = SCENES) -> PictureData:
    return PictureData(scenes, seed, device)


# Positions of a canvas are known by themselves: slots differ, and questions begin at the left.
_PLACES = (tuple(range(words.LENGTH)),)
TASK = Task(
    config=model.PictureConfig(words.VOCABULARY, width=128, depth=4, heads=4, sides=_PLACES, picture=SIDE, patch=10),
    data=_data,
    wrap=lambda model, device: PictureQuestions(Denoiser(model), device),
    build=model.build,
)
TRAININGS = MaskLaws(orders=("random", "confidence", "entropy", "uncertainty"), few=partial(_data, scenes=500))
PICTURE = cards.drawn
