"""The protein host: folding, inverse folding, and both at once, by a sampler in which visible tokens compete again."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from dprm.data.draws import row_hash
from dprm.data.fasta import Record, write_fasta
from dprm.decode import Compete, Cumulative, Decoding
from dprm.decode.loop import Model
from dprm.host.controller import Controller
from dprm.host.host import Host, Problems
from dprm.host.metrics import HELD_OUT, Metric, Preference
from dprm.hosts.dplm import model as bits
from dprm.hosts.dplm.domains import DomainData, domains
from dprm.hosts.dplm.reader import TwoStreams
from dprm.hosts.dplm.tokens import MASK, PAD, SIDES, STRUCTURE, VOCABULARY, shown, streams
from dprm.order import Reading
from dprm.order.noise import mix_rows
from dprm.train.denoiser import Denoiser
from dprm.train.task import Task
from dprm.train.trainings import LEARNED_ORDERS, MaskLaws
from dprm.train.transformer import Config

if TYPE_CHECKING:
    from dprm.host.rollout import Rollout

# What is hidden: the structure, the sequence, or of both a stretch of every domain.
TASKS = ("folding", "inverse", "both")
# Of a domain, how much of the task "both" is hidden.
_HIDDEN = 0.6
STEPS, MOST_STEPS = 20, 500


def stream(canvas: Tensor, reading: Reading) -> Tensor:
    """[B,L] the stream of every position, 1 for structure: both have statistics of their own."""
    return STRUCTURE.long().to(canvas.device).expand_as(canvas)


class Proteins(Host):
    """Domains of held-out superfamilies.

    The benefits are the recovered shares of hidden structure and of hidden sequence; where nothing of a stream was
    hidden it counts as recovered. `balanced` = √(structure · sequence) is measured and not rewarded.
    """

    name = "dplm"
    domain = "protein domains: sequence and structure"
    ordered = "residues and structure tokens"
    endings = (".fa", ".fasta")
    metrics = (Metric("structure"), Metric("sequence"), Metric("balanced", role=HELD_OUT))
    paper: ClassVar[Controller] = Controller(beta=8.0)
    preference = Preference({"structure": 0.5, "sequence": 0.5}, "tchebycheff")

    def __init__(self, model: Model, device: torch.device | str = "cpu", task: str = "both"):
        self._model, self.device, self.task = model, torch.device(device), task
        self.decoding = Decoding(
            mask_id=MASK,
            forbid=(PAD,),
            count=Cumulative(STEPS),
            revoke=Compete(),
            reader=TwoStreams(),
            states=2,
            state_of=stream,
        )

    def model(self) -> Model:
        return self._model

    def at(self, difficulty: str) -> Proteins:
        """A task, and steps if there are others than usual, such as `folding` or `both 100`."""
        task, _, steps = difficulty.partition(" ")
        if task not in TASKS or not (not steps or (steps.isdigit() and 1 <= int(steps) <= MOST_STEPS)):
            want = f"{', '.join(TASKS)}, and perhaps steps from 1 to {MOST_STEPS}, such as `both 100`"
            raise ValueError(f"difficulty is {difficulty!r}: expected one of {want}")
        other = copy.copy(self)
        other.task, other.variant = task, difficulty
        return other.with_decoding(count=Cumulative(int(steps))) if steps else other

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Domains of the split, in an order drawn from the seed; relatives belong together."""
        stock = domains().split(split)
        order = mix_rows(torch.arange(len(stock)), seed).argsort() if seed else torch.arange(len(stock))
        rows = order[:count]
        return self.posed(stock.canvas[rows].long(), stock.family[rows])

    def posed(self, true: Tensor, family: Tensor) -> Problems:
        """The problems of complete canvases [N,L]."""
        hidden = hidden_in(true, self.task)
        key = row_hash(torch.cat([true, hidden.long()], 1))
        canvas = true.masked_fill(hidden, MASK)
        facts = list(true.to(torch.uint8))
        return Problems(canvas.to(self.device), key.to(self.device), facts, group=family.to(self.device))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        true, hidden = torch.stack(list(problems.facts)).long(), (problems.canvas == MASK).cpu()
        structure, sequence = (
            torch.where(part.any(1), ((tokens == true) & part).sum(1) / part.sum(1).clamp(min=1), 1.0)
            for part in (hidden & STRUCTURE, hidden & ~STRUCTURE)
        )
        return torch.stack([structure, sequence, (structure * sequence).sqrt()], 1)

    def show(self, token: int) -> str:
        return shown(token)

    def write(self, path: Path, problems: Problems, rollout: Rollout) -> list[str]:
        """FASTA of the sequences, each followed by a record of its structure in DSSP letters."""
        names = [metric.name for metric in self.judged]
        records = []
        for row, (tokens, scores) in enumerate(zip(rollout.tokens.tolist(), rollout.scores.tolist(), strict=True), 1):
            sequence, structure = streams(tokens)
            records += [
                Record(f"domain-{row}", sequence, dict(zip(names, scores))),
                Record(f"domain-{row}-dssp", structure),
            ]
        write_fasta(path, records)
        return [f"{len(rollout):,} domains, sequence and structure"]


def hidden_in(true: Tensor, task: str) -> Tensor:
    """[N,L] bool: what a task hides of complete canvases; of `both` the same stretch of residues in either stream."""
    residue, structure = true != PAD, STRUCTURE.expand_as(true)
    if task != "both":
        return residue & (structure if task == "folding" else ~structure)
    count = residue.sum(1) // 2
    width = (_HIDDEN * count).long().clamp(min=1)
    first = row_hash(true) % (count - width + 1)
    place = torch.tensor(SIDES[1])
    inside = (place >= first.unsqueeze(1)) & (place < (first + width).unsqueeze(1))
    return residue & inside


TASK = Task(
    config=Config(VOCABULARY, width=128, depth=4, heads=4, sides=SIDES),
    data=lambda seed, device, work: DomainData(seed, device),
    wrap=lambda model, device: Proteins(Denoiser(model), device),
    build=bits.build,
)
TRAININGS = MaskLaws(orders=("random", "confidence", "entropy", "uncertainty", *LEARNED_ORDERS))
