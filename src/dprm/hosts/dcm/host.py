"""The cell host: a model of binned counts, held-out cells, and how much of them comes back."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dprm.data.splits import in_split
from dprm.decode import Decoding, Even
from dprm.decode.loop import Model
from dprm.host.controller import Controller
from dprm.host.host import Host, Problems
from dprm.host.metrics import HELD_OUT, SET, Metric, Preference
from dprm.host.rollout import Way
from dprm.hosts.dcm.baselines import Filled, Prepared
from dprm.hosts.dcm.bins import Bins
from dprm.hosts.dcm.data import Cells, prepared, prepared_for
from dprm.hosts.dcm.model import CellConfig, CellModel
from dprm.hosts.dcm.structure import centres, kept_neighbours, kept_types, types_of
from dprm.order import Reading
from dprm.order.noise import mix, mix_rows
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import LEARNED_ORDERS, MaskLaws

STEPS = 32
BENEFITS = ("nonzero", "mae", "zero")
# The paper's preferences: weights of nonzero recovery, MAE benefit, zero accuracy.
PREFERENCES = {
    "R": (0.90, 0.075, 0.025),
    "M": (0.05, 0.90, 0.05),
    "B": (0.45, 0.35, 0.20),
    "Z": (0.025, 0.075, 0.90),
}
# What is shown of a cell that is to be imputed.
SHOWN = (0.10, 0.20)
IMPUTE, UNCONDITIONAL = "impute", "unconditional"
# Masks of a cell that is to be imputed, samples of a cell that is made from nothing.
SAMPLES = {IMPUTE: 3, UNCONDITIONAL: 4}


class SingleCells(Host):
    """Held-out cells; what is ordered are their hidden genes, in 32 steps.

    Two variants: `impute` shows 10–20 % of the genes, in three ways a cell, and takes the most probable bins;
    `unconditional`, the protocol of the paper, shows nothing and draws four samples a cell, whose values change only
    when the canvas does and whose order is that of the largest probability. The aux state of a gene is whether its
    provisional bin is above 0.
    """

    name = "dcm"
    domain = "single cells, binned counts"
    ordered = "genes"
    metrics = (
        Metric("nonzero"),
        Metric("mae"),
        Metric("zero"),
        Metric("exact", role=HELD_OUT),
        Metric("neighbours", role=SET),
        Metric("types", role=SET),
    )
    preferences: ClassVar[Mapping[str, Preference]] = {
        name: Preference(dict(zip(BENEFITS, weights, strict=True)), "tchebycheff")
        for name, weights in PREFERENCES.items()
    }
    preference = preferences["R"]
    paper: ClassVar[Controller] = Controller(phases=4, states=True, guidance=2.0, ready=64.0, rule="top_m", sets=True)

    def __init__(
        self,
        model: Model,
        bins: Bins,
        mask_id: int,
        device: torch.device | str = "cpu",
        weights: str = "",
        cells: Prepared | None = None,
    ):
        self._model, self.bins, self.device, self.weights = model, bins, torch.device(device), weights
        self._cells = partial(prepared_for, bins) if cells is None else cells
        self.mask_id, self.task = mask_id, IMPUTE
        self.decoding = Decoding(mask_id=mask_id, count=Even(STEPS), states=2, state_of=self.state_of)
        self.ways = self._fillings()

    def model(self) -> Model:
        return self._model

    def at(self, difficulty: str) -> SingleCells:
        """`impute` or `unconditional`."""
        if difficulty not in (IMPUTE, UNCONDITIONAL):
            raise ValueError(f"difficulty is {difficulty!r}: expected {IMPUTE} or {UNCONDITIONAL}")
        drawn = difficulty == UNCONDITIONAL
        other = copy.copy(self).with_decoding(temperature=float(drawn), confidence_of="mode" if drawn else "drawn")
        other.task, other.variant = difficulty, difficulty
        other.ways = other._fillings()
        return other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Cells of a split, as many as there are: three masks of each, or four samples of each from nothing."""
        bins, key, _ = self._cells()
        row = in_split(key, split).nonzero().flatten()
        row = row[(key[row] ^ mix(seed)).argsort()] if seed else row
        samples = SAMPLES[self.task]
        row = row.repeat_interleave(samples)[:count]
        return self.posed(bins[row].long(), key[row], samples, seed)

    def answered(self, split: str, count: int, seed: int = 0) -> tuple[Problems, Tensor]:
        problems = self.problems(split, count, seed)
        return problems, torch.stack(list(problems.facts)).long()

    def posed(self, target: Tensor, cell: Tensor, samples: int = 1, seed: int = 0) -> Problems:
        """Problems of cells [N,G], each `samples` times in a row."""
        number = torch.arange(len(cell)) % samples
        key = mix_rows(mix_rows(cell, mix(seed, samples)) + number, 1) & (2**62 - 1)
        canvas = torch.full_like(target, self.mask_id)
        if self.task == IMPUTE:
            lot = (mix_rows(key.unsqueeze(1) + torch.arange(target.shape[1]), 3) >> 11 & (2**52 - 1)).double() / 2**52
            share = SHOWN[0] + (SHOWN[1] - SHOWN[0]) * (mix_rows(key, 4) >> 11 & (2**52 - 1)).double() / 2**52
            canvas = torch.where(lot < share.unsqueeze(1), target, canvas)
        return Problems(canvas.to(self.device), key.to(self.device), list(target.to(torch.uint8)), group=cell)

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        hidden = (problems.canvas == self.mask_id).cpu()
        target = torch.stack(list(problems.facts)).long()
        return judged(tokens.cpu(), target, hidden, self.bins.top)

    def judge_set(self, problems: Problems, tokens: Tensor) -> dict[str, float]:
        means = self.set_terms(problems, tokens).mean(0, keepdim=True)
        return {name: float(value) for name, value in self.set_of(means).items()}

    def set_terms(self, problems: Problems, tokens: Tensor) -> Tensor:
        """[C,2] of the first answer to every cell: the share of neighbours that stay; whether they tell its type."""
        first: dict[int, int] = {}
        for row, cell in enumerate(problems.groups.tolist()):
            first.setdefault(cell, row)
        rows = list(first.values())
        answer, target = tokens.cpu()[rows], torch.stack([problems.facts[row] for row in rows])
        kind = types_of(target, _centres(self._cells))
        return torch.stack([kept_neighbours(answer, target), kept_types(answer, kind)], 1)

    def set_of(self, means: Tensor) -> dict[str, Tensor]:
        return {"neighbours": means[:, 0], "types": means[:, 1]}

    def _fillings(self) -> Mapping[str, Way]:
        """Ways to fill hidden genes without this model; MAGIC where it is installed."""
        rules = ["zeros", "marginal", "typical"]
        if self.task == IMPUTE:
            rules += ["neighbours", *(["magic"] if importlib.util.find_spec("magic") is not None else [])]
        return {rule: Filled(rule, self._cells) for rule in rules}

    def state_of(self, tokens: Tensor, reading: Reading) -> Tensor:
        """Whether the provisional bin of every gene is above 0."""
        return (reading.tokens > 0).int()

    def show(self, token: int) -> str:
        return "·" if token == self.mask_id else f"{token:x}"


def judged(tokens: Tensor, target: Tensor, hidden: Tensor, top: int) -> Tensor:
    """[N,4] nonzero recovery, MAE benefit, zero accuracy, and the share that is exact, all over hidden genes.

        nonzero  P(x̂ = x | x ≠ 0)     mae  1 − mean |x̂ − x| over x ≠ 0, by the top bin     zero  P(x̂ = 0 | x = 0)

    A cell without such genes loses nothing. Args: tokens, target [N,G]; hidden [N,G] bool; top: the largest bin.
    """
    positive, zero = hidden & (target > 0), hidden & (target == 0)
    same = tokens == target

    def mean(values: Tensor, where: Tensor) -> Tensor:
        return torch.where(where.any(1), (values * where).sum(1) / where.sum(1).clamp(min=1), 1.0)

    close = 1.0 - (tokens - target).abs().clamp(max=top).double() / top
    columns = [mean(same.double(), positive), mean(close, positive), mean(same.double(), zero)]
    return torch.stack([*columns, mean(same.double(), hidden)], 1).float()


@cache
def _centres(cells: Prepared) -> Tensor:
    """[K,G] the centres of the types of the training cells."""
    bins, key, _ = cells()
    return centres(bins[in_split(key, "train")])


@dataclass(frozen=True)
class CellTask(Task):
    """Its model has the genes and bins of the prepared cells it is trained on."""

    cells: str = "marrow"

    def shaped(self, width: int | None, depth: int | None) -> Any:
        _, _, bins = prepared(self.cells)
        return CellConfig(bins.genes, bins.cuts).shaped(width, depth)


def task(name: str = "marrow") -> Task:
    """The training of this host on prepared cells."""

    def data(seed: int, device: torch.device, work: Path) -> Cells:
        bins, key, made = prepared(name)
        return Cells(bins, key, CellConfig(made.genes, made.cuts).mask_id, seed, device)

    return CellTask(CellConfig(), data, _host, build=CellModel, cells=name)  # type: ignore[arg-type]


def _host(model: nn.Module, device: torch.device) -> SingleCells:
    assert isinstance(model, CellModel)
    config = model.config
    return SingleCells(Denoiser(model), config.bins, config.mask_id, device)  # type: ignore[arg-type]


TRAININGS = MaskLaws(orders=("random", "confidence", *LEARNED_ORDERS), widths=(STEPS,))
TASK = task()
