"""The molecule host: a model of bracket-SAFE text, canvases of drawn lengths, and the molecules they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.decode import Decoding
from dprm.decode.loop import Model
from dprm.host.controller import Controller
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.metrics import HELD_OUT, SET, Metric, Preference
from dprm.host.rollout import Rollout
from dprm.hosts.genmol import canvas, files
from dprm.hosts.genmol.data import Molecules, prepared
from dprm.hosts.genmol.properties import Molecule, molecule, of_set
from dprm.order import NoisyConfidence, Reading
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import LEARNED_ORDERS, MaskLaws
from dprm.train.transformer import Config

# The paper's preferences Q, B and S, and the two points between them: (weight of QED, weight of SA).
PREFERENCES = {"Q": (0.95, 0.05), "QB": (0.80, 0.20), "B": (0.55, 0.45), "BS": (0.20, 0.80), "S": (0.05, 0.95)}
TEMPERATURE, RANDOMNESS = 1.0, 0.3
_SHOWN = 6


class GenMol(Host):
    """Molecules from nothing but a length; what is ordered are the positions of their text.

    Samples belong to the order, not to a problem: arms are compared as independent samples. The aux state of a
    position is the class of its predicted token (8).
    """

    name = "genmol"
    domain = "molecules in bracket-SAFE"
    ordered = "positions of the fragment text"
    metrics = (
        Metric("qed"),
        Metric("sa"),
        Metric("whole", role=HELD_OUT),
        Metric("clean", role=HELD_OUT),
        Metric("validity", role=SET),
        Metric("uniqueness", role=SET),
        Metric("diversity", role=SET),
    )
    preferences: ClassVar[Mapping[str, Preference]] = {
        name: Preference({"qed": qed, "sa": sa}, "tchebycheff") for name, (qed, sa) in PREFERENCES.items()
    }
    preference = preferences["B"]
    paper: ClassVar[Controller] = Controller(states=True, warm_signal="random")
    endings = tuple(files.FORMS)
    paired = False

    def __init__(self, model: Model, device: torch.device | str = "cpu", weights: str = ""):
        self._model, self.device, self.weights = model, torch.device(device), weights
        self._class = torch.tensor(canvas.CLASS_OF, dtype=torch.int32, device=device)
        self.decoding = Decoding(
            mask_id=canvas.MASK,
            forbid=(canvas.BLANK,),
            signal=NoisyConfidence(RANDOMNESS),
            temperature=TEMPERATURE,
            states=canvas.CLASSES,
            state_of=self.state_of,
        )

    def model(self) -> Model:
        return self._model

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Canvases of lengths drawn as the training molecules have them; a problem is a length and a number."""
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
        draws = Draws("genmol", split, seed)
        lengths = canvas.drawn_lengths(draws, count)
        key = row_hash(torch.stack([draws.bits(count), torch.arange(count)], 1))
        return Problems(canvas.masked(lengths).to(self.device), key.to(self.device), lengths.tolist())

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        made = self.molecules(tokens)
        scores = [(0.0,) * 4 if m is None else (m.qed, m.sa, float(m.whole), float(m.clean)) for m in made]
        return torch.tensor(scores).view(len(scores), 4)

    def judge_set(self, problems: Problems, tokens: Tensor) -> dict[str, float]:
        return of_set([m.smiles for m in self.molecules(tokens) if m is not None], len(tokens))

    def molecules(self, tokens: Tensor) -> Sequence[Molecule | None]:
        """The molecule of every canvas [N,L], None where there is none."""
        return [molecule(canvas.read(row)) for row in tokens.tolist()]

    def examples(self, problems: Problems, tokens: Tensor) -> list[str]:
        """The SMILES of the first molecules."""
        made = self.molecules(tokens[: 2 * _SHOWN])
        return [each.smiles for each in made if each is not None][:_SHOWN]

    def write(self, path: Path, problems: Problems, rollout: Rollout) -> list[str]:
        """Different molecules, the highest reward first, as .sdf, .smi, .csv or a picture, .svg."""
        rewards = self.reward(rollout.scores).tolist()
        answers = list(zip(self.molecules(rollout.tokens), rewards, strict=True))
        there = [made for made, _ in answers if made is not None]
        times = Counter(made.smiles for made in there)
        best: dict[str, tuple[Molecule, float]] = {}
        for made, reward in answers:
            if made is not None:
                best.setdefault(made.smiles, (made, reward))
        ranked = sorted(best.values(), key=lambda entry: -entry[1])
        rows = [
            (made, {"reward": f"{reward:.4f}", "mended": str(not made.whole), "times": str(times[made.smiles])})
            for made, reward in ranked
        ]
        files.write(path, rows)
        said = {
            "no molecule": len(answers) - len(there),
            "the same molecule again": len(there) - len(ranked),
        }
        means = [sum(getattr(made, name) for made, _ in ranked) / max(1, len(ranked)) for name in ("qed", "sa")]
        return [
            f"{len(ranked)} molecules, mean QED {means[0]:.3f}, mean (10 − SA)/9 {means[1]:.3f}",
            *(f"left out: {count}, {reason}" for reason, count in said.items() if count),
            *(f"mended: {mended}, damaged texts" for mended in [sum(not made.whole for made, _ in ranked)] if mended),
        ]

    def state_of(self, tokens: Tensor, reading: Reading) -> Tensor:
        """The class of the predicted token of every position of canvases [B,L]."""
        return self._class[reading.tokens]

    def show(self, token: int) -> str:
        if token == canvas.MASK:
            return "·"
        return " " if token == canvas.BLANK else canvas.TEXTS[token]


def task(name: str = "moses") -> Task:
    """The training of this host on prepared molecules."""

    def data(seed: int, device: torch.device, work: Path) -> Molecules:
        return Molecules(*prepared(name), seed, device)

    return Task(
        config=Config(canvas.VOCABULARY, width=128, depth=6, heads=4),
        data=data,
        wrap=lambda model, device: GenMol(Denoiser(model), device=device),
    )


PICTURE = files.grid
TRAININGS = MaskLaws(orders=("random", "confidence", *LEARNED_ORDERS), widths=(1,))
TASK = task()
