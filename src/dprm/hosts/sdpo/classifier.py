"""The held-out judge: is a sequence open in HepG2 rather than in another cell line? A small convolutional network.

It has seen sites of even chromosomes and of X and Y, the generator those of odd ones, and the rewarded motif score
none. Both strands are read and averaged. `classifier.safetensors` beside this file is written, with its scores on
chromosomes 1 and 2 in the header, by

    python -m dprm.hosts.sdpo.classifier
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprm.data.draws import Draws
from dprm.hosts.sdpo.bases import one_hot
from dprm.hosts.sdpo.sites import CELLS, Sites, sites
from dprm.order.files import read_tensors, write_tensors

SHIPPED = Path(__file__).with_name("classifier.safetensors")
COMMAND = "python -m dprm.hosts.sdpo.classifier"
_KIND = "dprm.sdpo.classifier"


class Classifier(nn.Module):
    """Tokens [N,L] → [N] the log odds of HepG2, cells being equally frequent in each class."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.first = nn.Conv1d(4, width, 15, padding=7)
        self.second = nn.Conv1d(width, width, 7, padding=3)
        self.hidden = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        bases = one_hot(tokens)
        # The other strand: backwards, A for T and C for G.
        return (self._strand(bases) + self._strand(bases.flip(1, 2))) / 2

    def _strand(self, bases: Tensor) -> Tensor:
        h = F.max_pool1d(self.first(bases).relu(), 4)
        h = self.second(h).relu()
        pooled = torch.cat([h.amax(2), h.mean(2)], dim=1)
        logits: Tensor = self.out(self.hidden(pooled).relu()).squeeze(1)
        return logits


@cache
def shipped(device: str = "cpu") -> Classifier:
    """The committed classifier."""
    tensors, _ = read_tensors(SHIPPED, _KIND)
    model = Classifier(len(tensors["first.bias"]))
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model.to(device).requires_grad_(False).eval()


@torch.no_grad()
def hepg2(model: Classifier, tokens: Tensor, rows: int = 1024) -> Tensor:
    """[N] the probability of HepG2."""
    parts = [model(tokens[start : start + rows]).sigmoid() for start in range(0, len(tokens), rows)]
    return torch.cat(parts) if parts else torch.zeros(0)


def trained(part: Sites, epochs: int = 5, rows: int = 128, rate: float = 2e-3, seed: int = 0) -> Classifier:
    """A classifier of sites; the classes weigh the same, so that 1/2 is where the evidence is even."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Classifier()
    wanted = (part.cell == CELLS.index("HepG2")).float()
    balance = (1 - wanted).sum() / wanted.sum()
    steps = epochs * (len(part) // rows)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for epoch in range(epochs):
        order = Draws("classifier", seed, epoch).permutations(len(part))
        for start in range(0, len(part) - rows + 1, rows):
            batch = order[start : start + rows]
            tokens = part.bases[batch].long()
            loss = F.binary_cross_entropy_with_logits(model(tokens), wanted[batch], pos_weight=balance)
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
    return model.requires_grad_(False).eval()


def area(scores: Tensor, positive: Tensor) -> float:
    """Area under the ROC curve of scores [N] for positive [N] bool: how often one outranks one that is not."""
    rank = scores.argsort().argsort().double() + 1
    count = positive.sum()
    return float((rank[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count)))


def main() -> None:
    """Train, judge on chromosomes that were not seen, and write."""
    every = sites()
    model = trained(every.part("classifier"))
    facts: dict[str, Any] = {"command": COMMAND}
    for name in ("select", "test"):
        part = every.part(name)
        p, positive = hepg2(model, part.bases.long()), part.cell == CELLS.index("HepG2")
        facts[name] = {
            "area": round(area(p, positive), 4),
            "accuracy": round(float(((p > 0.5) == positive).float().mean()), 4),
        }
    write_tensors(
        SHIPPED, {name: tensor.half() for name, tensor in model.state_dict().items()}, {"kind": _KIND, **facts}
    )
    print(facts)


if __name__ == "__main__":
    main()
