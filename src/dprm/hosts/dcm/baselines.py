"""What any imputation must beat, and what people use: ways to fill hidden genes without this model.

    zeros      every hidden gene is 0
    marginal   a draw from what the gene holds in the training cells, gene by gene
    typical    what the gene most often holds there
    neighbours the middle bin of the 30 training cells that are nearest in the visible genes
    magic      MAGIC (magic-impute) smooths the visible counts over neighbouring cells

MAGIC works in counts: it sees the training cells whole, and of the cells in question only the visible entries, hidden
ones being 0, as it takes dropouts. Its values are binned like counts. Shapes: N cells, G genes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor

from dprm.data.splits import in_split
from dprm.decode.loop import Model
from dprm.host.host import Host, Problems
from dprm.host.rollout import CALLS, Rollout
from dprm.hosts.dcm.bins import Bins
from dprm.order.noise import mix_rows

_NEAREST = 30
# Its dependencies ask for an older pandas than anndata does, and work with a newer one.
PEER = "pip install --no-deps magic-impute graphtools PyGSP scprep tasklogger Deprecated wrapt future decorator"
Prepared = Callable[[], tuple[Tensor, Tensor, Bins]]


@dataclass(frozen=True)
class Filled:
    """Hidden genes filled by one of the rules above.

    Attributes:
        rule: its name. cells: gives the prepared cells.
    """

    rule: str
    cells: Prepared

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        began = time.perf_counter()
        canvas = problems.canvas.cpu()
        hidden = canvas == host.decoding.mask_id
        bins, key, made = self.cells()
        train = bins[in_split(key, "train")]
        filled = RULES[self.rule](canvas, hidden, train, made, mix_rows(problems.key.cpu(), seed))
        tokens = torch.where(hidden, filled, canvas)
        scores = host.scores(problems, tokens)
        return _rollout(tokens, scores, time.perf_counter() - began)

    def spec(self) -> Any:
        return ["filled", self.rule]


def zeros(canvas: Tensor, hidden: Tensor, train: Tensor, bins: Bins, seeds: Tensor) -> Tensor:
    """[N,G] nothing."""
    return torch.zeros_like(canvas)


def marginal(canvas: Tensor, hidden: Tensor, train: Tensor, bins: Bins, seeds: Tensor) -> Tensor:
    """[N,G] of every gene what it holds in a training cell of its own."""
    place = torch.arange(canvas.shape[1])
    row = (mix_rows(seeds.unsqueeze(1) + place, 11) & (2**62 - 1)) % len(train)
    return train[row, place].long()


def typical(canvas: Tensor, hidden: Tensor, train: Tensor, bins: Bins, seeds: Tensor) -> Tensor:
    """[N,G] of every gene what most training cells hold."""
    return train.mode(0).values.long().expand_as(canvas)


def neighbours(canvas: Tensor, hidden: Tensor, train: Tensor, bins: Bins, seeds: Tensor) -> Tensor:
    """[N,G] the median bin of the nearest training cells, by squared distance of the visible bins."""
    shown, stock = (~hidden).float(), train.float()
    known = canvas.masked_fill(hidden, 0).float()
    # Σ over visible genes of (x − t)², without what is the same for all t.
    distance = shown @ stock.square().T - 2.0 * known @ stock.T
    nearest = distance.topk(min(_NEAREST, len(train)), dim=1, largest=False).indices
    return torch.stack([train[rows].long().median(0).values for rows in nearest])


def magic(canvas: Tensor, hidden: Tensor, train: Tensor, bins: Bins, seeds: Tensor) -> Tensor:
    """[N,G] the bins of what MAGIC makes of all training cells and the visible entries of these."""
    try:
        from magic import MAGIC
    except ImportError:
        raise ValueError(f"the baseline magic needs magic-impute: {PEER}") from None
    # The least count of every bin stands for it: both sides of the comparison see the same binned counts.
    least = torch.tensor([0.0, 1.0, *bins.cuts])
    known = torch.cat([least[train.long()], least[canvas.masked_fill(hidden, 0)]]).numpy()
    library = numpy.maximum(known.sum(1, keepdims=True), 1.0)
    scale = float(numpy.median(library))
    smooth = MAGIC(random_state=0, verbose=0).fit_transform(numpy.sqrt(known / library * scale))
    values = numpy.square(numpy.asarray(smooth)[len(train) :])
    # Back to counts: as many as the visible genes of the cell have, by what MAGIC says of the same genes.
    shown = ~hidden.numpy()
    seen, said = (known[len(train) :] * shown).sum(1), (values * shown).sum(1)
    counts = values * (seen / numpy.maximum(said, 1e-9))[:, None]
    return bins.of(numpy.rint(counts)).long()


RULES = {"zeros": zeros, "marginal": marginal, "typical": typical, "neighbours": neighbours, "magic": magic}


def _rollout(tokens: Tensor, scores: Tensor, seconds: float) -> Rollout:
    none = torch.zeros(len(tokens), dtype=torch.int64)
    return Rollout(
        tokens=tokens,
        step_map=torch.zeros_like(tokens, dtype=torch.int32),
        confidence=torch.full_like(tokens, torch.nan, dtype=torch.float32),
        scores=scores,
        calls={CALLS: none},
        decisions=none,
        changed=none,
        picks=none,
        ready=none,
        gate=none.float(),
        seconds=torch.full((len(tokens),), seconds / max(1, len(tokens))),
    )
