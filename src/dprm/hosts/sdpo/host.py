"""The host of regulatory DNA: sequences of 200 bases that bind the factors of liver cells."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.fasta import Record, read_fasta, write_fasta
from dprm.data.lines import nothing_left
from dprm.decode import Decoding, Fixed
from dprm.decode.loop import Model
from dprm.host import weights as committed
from dprm.host.controller import Controller
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.metrics import HELD_OUT, SET, Metric, Preference
from dprm.hosts.sdpo import classifier
from dprm.hosts.sdpo.bases import DESIGNED, LENGTH, LETTERS, MASK, VOCABULARY, decoded, encoded, word_counts
from dprm.hosts.sdpo.greedy import GreedySubstitution
from dprm.hosts.sdpo.motifs import motif_score
from dprm.hosts.sdpo.sites import SiteData
from dprm.hosts.sdpo.words import word_correlation
from dprm.order.signals import Random
from dprm.train.denoiser import Denoiser, load_weights
from dprm.train.finetuning import FineTunings
from dprm.train.objective import likelihood_bound
from dprm.train.task import Task
from dprm.train.transformer import Config

if TYPE_CHECKING:
    from dprm.host.rollout import Rollout

# Masks on which the reference likelihood is estimated: the same for every sequence, at even shares.
_MASKS = 8


class RegulatoryDNA(Host):
    """Every problem is an empty canvas; what differs are random numbers.

    The native order is random, as that of the sampler of the paper; tokens are drawn, and the order sees max p.
    """

    name = "sdpo"
    domain = "regulatory DNA for liver cells"
    ordered = "bases"
    paired = False
    endings = (".fa", ".fasta")
    metrics = (
        Metric("motif"),
        Metric("hepg2", role=HELD_OUT),
        Metric("log_likelihood", (-5000.0, 0.0), HELD_OUT),
        Metric("3-mer correlation", (-1.0, 1.0), SET),
        Metric("total", (-1.0, 1.0), SET),
    )
    preference = Preference({"motif": 1.0})
    success: ClassVar[str] = "hepg2"
    paper: ClassVar[Controller] = Controller(phases=1, bins=10, ready=64.0, rule="soft_bon", shortlist=(64, 64, 1))
    ways = MappingProxyType({"greedy substitution": GreedySubstitution()})
    decoding = Decoding(mask_id=MASK, signal=Random(), count=Fixed(4), temperature=1.0, confidence_of="mode")

    def __init__(self, model: Model, reference: Model | None = None, device: torch.device | str = "cpu"):
        """Args: reference: the pretrained model, by which the likelihood is told; None: this one."""
        self._model, self._reference, self.device = model, reference or model, torch.device(device)

    def model(self) -> Model:
        return self._model

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
        number = torch.arange(count)
        named = torch.stack([number, torch.full_like(number, SPLITS.index(split)), torch.full_like(number, seed)], 1)
        canvas = torch.full((count, LENGTH), MASK)
        return Problems(
            canvas.to(self.device), row_hash(named).to(self.device), [f"{split}-{row}" for row in range(count)]
        )

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        """FASTA of 200 bases, with _ where a base is to be designed."""
        records, left_out = read_fasta(path, DESIGNED)
        left_out += [f"{record.name}: it has no _ to design" for record in records if "_" not in record.letters]
        records = [record for record in records if "_" in record.letters]
        if not records:
            raise nothing_left(path, left_out)
        canvas = encoded([record.letters for record in records])
        names = [record.name for record in records]
        told = torch.stack([torch.arange(len(records)), torch.full((len(records),), len(SPLITS))], 1)
        key = row_hash(torch.cat([canvas, told], 1))
        return Problems(canvas.to(self.device), key.to(self.device), names), left_out

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        tokens = tokens.to(self.device)
        judge = classifier.shipped(str(self.device))
        success = classifier.hepg2(judge, tokens) > 0.5
        return torch.stack([motif_score(tokens), success.float(), self.log_likelihood(tokens)], 1)

    def judge_set(self, problems: Problems, tokens: Tensor) -> dict[str, float]:
        means = self.set_terms(problems, tokens).mean(0, keepdim=True)
        return {name: float(value) for name, value in self.set_of(means).items()}

    def set_terms(self, problems: Problems, tokens: Tensor) -> Tensor:
        """[N,66] motif score, HepG2 success, and the counts of 64 words of three bases."""
        tokens = tokens.to(self.device)
        success = classifier.hepg2(classifier.shipped(str(self.device)), tokens) > 0.5
        columns = motif_score(tokens).unsqueeze(1), success.unsqueeze(1), word_counts(tokens)
        return torch.cat([column.double() for column in columns], 1).cpu()

    def set_of(self, means: Tensor) -> dict[str, Tensor]:
        """3-mer correlation to real sites of HepG2, and total = motif · HepG2 success · correlation, each a mean."""
        correlation = word_correlation(means[:, 2:])
        return {"3-mer correlation": correlation, "total": means[:, 0] * means[:, 1] * correlation}

    @torch.no_grad()
    def log_likelihood(self, tokens: Tensor) -> Tensor:
        """[N] a lower bound on log p(x) of the pretrained model, by the same masks for every sequence.

        It is compiled where the model is.
        """
        if getattr(self._model, "compiled", False) and not getattr(self._reference, "compiled", True):
            self._reference.compile()  # type: ignore[attr-defined]
        rank = Draws("likelihood", device=tokens.device).permutations(LENGTH)
        total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
        length = torch.full((len(tokens),), LENGTH, device=tokens.device)
        for mask in range(_MASKS):
            hidden = (rank < (mask + 0.5) / _MASKS * LENGTH).expand_as(tokens)
            logits = self._reference(tokens.masked_fill(hidden, MASK))
            total += likelihood_bound(logits, tokens, hidden, length)
        return (total / _MASKS).clamp(min=-5000.0).float()

    def show(self, token: int) -> str:
        return "·" if token == MASK else LETTERS[token]

    def write(self, path: Path, problems: Problems, rollout: Rollout) -> list[str]:
        """FASTA, scores in the headers, the best by the reward first."""
        order = self.reward(rollout.scores).argsort(descending=True)
        names = [metric.name for metric in self.judged]
        letters, scores = decoded(rollout.tokens), rollout.scores.tolist()
        rows = [(f"design-{place}", row) for place, row in enumerate(order.tolist(), 1)]
        write_fasta(path, [Record(name, letters[row], dict(zip(names, scores[row]))) for name, row in rows])
        return [f"{len(rows):,} sequences, {len(set(letters)):,} of them different"]


def _wrap(model: torch.nn.Module, device: torch.device) -> RegulatoryDNA:
    """The host of a model; the likelihood is that of the committed weights, if they are here."""
    reference = None
    if committed.present("sdpo.safetensors"):
        reference = Denoiser(load_weights(committed.checked("sdpo.safetensors", ""), device)[0])
    return RegulatoryDNA(Denoiser(model), reference, device)  # type: ignore[arg-type]


TASK = Task(
    config=Config(VOCABULARY, width=96, depth=4, heads=3),
    data=lambda seed, device, work: SiteData(seed, device),
    wrap=_wrap,
)
TRAININGS = FineTunings(
    reward=motif_score,
    orders=(),
    widths=(4,),
    temperature=1.0,
)
