"""The same four slots in a world that others have drawn: pictures and questions of `easy-vqa`.

5,000 pictures of 64×64 pixels show one shape in one colour; a question has one of 13 answers. Test questions are those
of the package's test pictures; its training pictures are split by number. There are no counts: answers are `yes`, `no`,
a shape or a colour, and the other slots are EOT. Shapes: N questions, L = 16 positions.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.packages import DataSets, Source
from dprm.data.splits import SPLITS, in_split
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.host import Host, Problems
from dprm.host.metrics import Metric
from dprm.hosts.llada_v import model
from dprm.order import Reading
from dprm.order.files import read_tensors, write_tensors
from dprm.order.noise import mix_rows
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import MaskLaws

EASY_VQA = Source(
    package="easy-vqa",
    archive="easy_vqa-1.0-py3-none-any.whl",
    sha256="fcb51b309b78c7b00f97b64cdbcbcf5c105f94da1b39c0796cee5a787c4f650f",
    inside="",
    licence="MIT",
    about="5,000 pictures and 48,248 questions about them",
)
_KIND, _FILE = "dprm.questions", "questions.safetensors"
QUESTION, SLOTS, SIDE = 12, 4, 64
LENGTH = QUESTION + SLOTS
FORMATS = ("yes or no", "open")
_ANSWERS = "yes no circle rectangle triangle red green blue yellow gray teal black brown"
BLANK, EOT, MASK = 0, 1, 2
_ASKING = "? a color contain does image in is not of present shape the there what"
WORDS = ("", "□", "·", *_ANSWERS.split(), *_ASKING.split())
STATES = len(FORMATS) * 2 * SLOTS


def encoded(question: str, answer: str) -> list[int]:
    """A canvas with its answer."""
    asked = [WORDS.index(word) for word in re.findall(r"\w+|\?", question.lower())]
    if len(asked) > QUESTION:
        raise ValueError(f"question has {len(asked)} words: expected at most {QUESTION}")
    return [*asked, *[BLANK] * (QUESTION - len(asked)), WORDS.index(answer), *[EOT] * (SLOTS - 1)]


def prepare(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """Pictures [P,64,64,3], canvases [N,16], the picture of each and whether it is of the test part, of the archive."""
    import numpy
    from PIL import Image

    pictures: list[Tensor] = []
    tokens: list[list[int]] = []
    shown: list[int] = []
    test: list[bool] = []
    with zipfile.ZipFile(path) as archive:
        for part in ("train", "test"):
            at = f"easy_vqa/data/{part}"
            number = {}
            for text, answer, image in json.loads(archive.read(f"{at}/questions.json")):
                if image not in number:
                    number[image] = len(pictures)
                    drawn = Image.open(io.BytesIO(archive.read(f"{at}/images/{image}.png"))).convert("RGB")
                    pictures.append(torch.from_numpy(numpy.array(drawn)))
                tokens.append(encoded(text, answer))
                shown.append(number[image])
                test.append(part == "test")
    tensors = {
        "pictures": torch.stack(pictures),
        "tokens": torch.tensor(tokens, dtype=torch.uint8),
        "shown": torch.tensor(shown),
        "test": torch.tensor(test),
    }
    write_tensors(folder / _FILE, tensors, {"kind": _KIND})
    return folder / _FILE, [f"{len(tokens):,} questions about {len(pictures):,} pictures"]


@cache
def questions() -> dict[str, Tensor]:
    """The prepared questions; obtained and prepared where they are not yet."""
    return read_tensors(DATA.prepared("easy_vqa", "questions", _FILE), _KIND)[0]


def rows_of(split: str) -> Tensor:
    """[n] the questions of a split."""
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
    listed = questions()
    if split == "test":
        return listed["test"].nonzero().flatten()
    # Of 16 parts of the training pictures those of fit, select and test; the last are trained on too.
    part = row_hash(listed["shown"].unsqueeze(1))
    inside = in_split(part, split) | (in_split(part, "test") if split == "train" else False)
    return (inside & ~listed["test"]).nonzero().flatten()


def cell_state(canvas: Tensor, reading: Reading) -> Tensor:
    """[B,L] int64 in 0 … 15: position + 4·(EOT + 2·format); a question that begins with `what` is open."""
    place = (torch.arange(LENGTH, device=canvas.device) - QUESTION).clamp(min=0)
    opened = (canvas[:, :1] == WORDS.index("what")).long()
    return place + SLOTS * ((reading.tokens == EOT).long() + 2 * opened)


class EasyQuestions(Host):
    """Questions of `easy-vqa`; the reward is an exact match."""

    name = "easy_vqa"
    domain = "questions about pictures of easy-vqa"
    ordered = "answer slots"
    metrics = (Metric("match"),)
    success: ClassVar[str] = "match"
    decoding = Decoding(mask_id=MASK, forbid=(BLANK,), states=STATES, state_of=cell_state)

    def __init__(self, model: Model, device: torch.device | str = "cpu"):
        self._model, self.device = model, torch.device(device)

    def model(self) -> Model:
        return self._model

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Questions of the split in an order drawn from the seed; those about one picture belong together."""
        listed, rows = questions(), rows_of(split)
        rows = rows[mix_rows(rows, seed, 1).argsort()]
        # Some questions about a picture are asked twice.
        key = row_hash(torch.cat([listed["shown"][rows].unsqueeze(1), listed["tokens"][rows].long()], 1))
        first = torch.tensor(list({each: place for place, each in reversed(list(enumerate(key.tolist())))}.values()))
        kept = first.sort().values[:count]
        rows, key = rows[kept], key[kept]
        shown = listed["shown"][rows]
        tokens = listed["tokens"][rows].long()
        canvas = tokens.masked_fill(torch.arange(LENGTH) >= QUESTION, MASK)
        pictures = listed["pictures"][shown].to(self.device)
        return Problems(canvas.to(self.device), key.to(self.device), list(tokens), pictures, shown.to(self.device))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        return (tokens == torch.stack(list(problems.facts))).all(1).float()

    def parts(self, fact: Any) -> tuple[str, ...]:
        """Its format."""
        return (FORMATS[int(fact[0] == WORDS.index("what"))],)

    def show(self, token: int) -> str:
        return WORDS[token] + " "


class EasyData:
    """Training sequences with their pictures (see `masks.Data`)."""

    mask_id = MASK

    def __init__(self, seed: int, device: torch.device):
        rows, listed = rows_of("train"), questions()
        self.seed, self.device = seed, device
        self._tokens, self._shown = listed["tokens"][rows].to(device), listed["shown"][rows].to(device)
        self._pictures = listed["pictures"].to(device)
        self._answer = torch.arange(LENGTH, device=device) >= QUESTION

    def batch(self, step: int, rows: int) -> tuple[Tensor, Tensor]:
        return self._tokens[self._index(step, rows)].long(), self._answer.expand(rows, -1)

    def context(self, step: int, rows: int) -> Tensor:
        """[B,S,S,3] the pictures of a batch."""
        return self._pictures[self._shown[self._index(step, rows)]]

    def _index(self, step: int, rows: int) -> Tensor:
        return Draws("easy-vqa", self.seed, step, device=self.device).below(len(self._tokens), rows)


DATA = DataSets({"questions": EASY_VQA}, prepare)
TASK = Task(
    config=model.PictureConfig(
        len(WORDS), width=64, depth=3, heads=2, sides=(tuple(range(LENGTH)),), picture=SIDE, patch=16
    ),
    data=lambda seed, device, work: EasyData(seed, device),
    wrap=lambda model, device: EasyQuestions(Denoiser(model), device),
    build=model.build,
)
TRAININGS = MaskLaws(orders=("random", "confidence", "entropy", "uncertainty"))
