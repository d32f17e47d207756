"""The host of pictures: a caption of at most 16 words becomes 16×16 visual codes, one position a step.

As in Omni-Diffusion the native order is −H of the penalised logits, every token is the most probable one, and all 260
slots of the template are ordered, the four format tokens among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor

from dprm.data.lines import nothing_left
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.metrics import HELD_OUT, Metric
from dprm.host.rollout import Rollout, Way
from dprm.hosts.omni import canvas, files, judges
from dprm.hosts.omni.captions import WORDS, Caption, read
from dprm.hosts.omni.data import TRAINED, PictureData, pairs
from dprm.hosts.omni.intervention import REWARD, SCORE, UNIFORM, BestOfSeeds, Intervention
from dprm.hosts.omni.penalties import Painter
from dprm.hosts.omni.predicates import checked
from dprm.order.signals import Entropy
from dprm.train.task import Task
from dprm.train.trainings import LEARNED_ORDERS, MaskLaws
from dprm.train.transformer import Config

_SHOWN = 6


class Pictures(Host):
    """Pictures of captions; what is ordered are the 260 slots."""

    name = "omni"
    domain = "pictures of captions, 16×16 visual codes"
    ordered = "visual-code positions"
    metrics = (
        Metric("similarity"),
        Metric("evaluator", role=HELD_OUT),
        Metric("true", role=HELD_OUT),
        Metric("solved", role=HELD_OUT),
    )
    endings = (".png", ".svg")
    decoding = Decoding(mask_id=canvas.MASK, signal=Entropy())
    design: ClassVar[Way | None] = Intervention()
    ways = MappingProxyType(
        {
            "dprm, 5 paths": Intervention(SCORE),
            "reward only, 5 paths": Intervention(REWARD),
            "uniform order, 5 paths": Intervention(UNIFORM),
            "best of 5 seeds": BestOfSeeds(),
        }
    )

    def __init__(self, model: Model, device: torch.device | str = "cpu", weights: str = ""):
        self._model, self.device, self.weights = model, torch.device(device), weights
        # So that a kept result belongs to its judges.
        self.judged_by = judges.digest()

    def model(self) -> Model:
        return self._model

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Captions of scenes of the split, no two of which say the same; the facts are the captions."""
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
        return self.posed(pairs(split, count, seed, distinct=True)[0])

    def posed(self, captions: Sequence[Caption]) -> Problems:
        """The problems of some captions."""
        key = torch.tensor([caption.key for caption in captions], dtype=torch.int64)
        return Problems(canvas.blank(captions).to(self.device), key.to(self.device), list(captions))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        """What is rewarded, what the independent evaluator says, and what the check without a model says twice."""
        pictures = canvas.picture(tokens.cpu())
        models = judges.scores(problems.facts, pictures)
        return torch.cat([models, checked(problems.facts, pictures)], 1)

    def read_one(self, text: str) -> Problems:
        """The problem of a caption such as `three red circles left of a blue square`."""
        return self.posed([read(text)])

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """A caption a line."""
        listed: dict[int, Caption] = {}
        left_out = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip():
                try:
                    caption = read(line)
                    listed.setdefault(caption.key, caption)
                except ValueError as error:
                    left_out.append(f"line {number}: {error}")
        if not listed:
            raise nothing_left(path, left_out)
        return self.posed(list(listed.values())), left_out

    def examples(self, problems: Problems, tokens: Tensor) -> list[str]:
        """The first pictures: caption, and codes in letters row by row."""
        shown = zip(problems.facts[:_SHOWN], canvas.picture(tokens[:_SHOWN]).flatten(1).tolist())
        return [f"{caption} {''.join(canvas.LETTERS[code] for code in codes)}" for caption, codes in shown]

    def write(self, path: Path, problems: Problems, rollout: Rollout) -> list[str]:
        """PNG, or SVG with captions; a line for every picture says what it is worth and what was looked for in it."""
        files.write(path, [str(caption) for caption in problems.facts], canvas.picture(rollout.tokens))
        lines = []
        for row, caption in enumerate(problems.facts):
            scores = zip(self.judged, rollout.scores[row].tolist(), strict=True)
            said = ", ".join(f"{metric.name} {score:.3f}" for metric, score in scores)
            lines.append(f"{caption}: {said}; {int(rollout.nfe[row])} model calls")
        return lines

    def show(self, token: int) -> str:
        if token < canvas.CODES:
            return canvas.LETTERS[token]
        marks = {canvas.BEGIN: "[", canvas.END: "]", canvas.TURN: "/", canvas.TEXT: "□", canvas.BLANK: " "}
        return "·" if token == canvas.MASK else marks.get(token) or f"{WORDS[token - canvas.SHOWN]} "


def _data(seed: int, device: torch.device, work: Path, count: int = TRAINED) -> PictureData:
    return PictureData(seed, device, count)


TASK = Task(
    config=Config(canvas.VOCABULARY, width=64, depth=4, heads=2, sides=canvas.SIDES),
    data=_data,
    wrap=lambda model, device: Pictures(Painter(model), device),
)
TRAININGS = MaskLaws(
    orders=("random", "entropy", "confidence", *LEARNED_ORDERS),
    widths=(1, 2, 4),
    rows=32,
    rate=3e-3,
    checked=16,
    few=partial(_data, count=200),
)
PICTURE = files.sheet
