"""A learned head: the value of revealing each position, from what a decision shows anyway. No denoiser call is added.

    R̂_i = b · φ_i + w · g(V · g(z_i))       φ the fixed features of `basis`; a network, if there is one; g the GELU
    z_i = W · (x_{i−r} … x_{i+r}) + U · (mean of x over candidates, mean of x over all)
    x_i = [numbers of position i, its aux state]

Which token it is is not shown to it, and of its place only how many candidates stand to the left: with the tens of
thousands of comparisons that a fit can pay for, it would learn them by heart. Both last layers start at 0: a head that
was not fitted leaves the host's order as it is. Shapes: B rows, L positions, C channels, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprm.order.basis import basis, names
from dprm.order.pace import LEVELS, paced
from dprm.order.reading import Reading

# Confidence, −log(1 − confidence), margin, entropy, log ratio to the surest candidate, candidate, native, progress, m;
# then whose turn it is at every level of `pace`.
NUMBERS = 9 + 2 * len(LEVELS)
_EMBEDDED = 8


@dataclass
class Sight:
    """What a head sees of one decision.

    Attributes:
        tokens: [B,L] int64, the canvas if all were revealed now: predictions, and what is visible already.
        confidence, margin, entropy: [B,L] float32, as in `Reading`; meaningless where nothing is masked.
        candidates: [B,L] bool. progress: [B] float32. budget: [B] int64.
        aux: [B,L] int64, the host's state of every position; zeros where there is none.
    """

    tokens: Tensor
    confidence: Tensor
    margin: Tensor
    entropy: Tensor
    candidates: Tensor
    progress: Tensor
    budget: Tensor
    aux: Tensor

    @classmethod
    def of(
        cls,
        reading: Reading,
        candidates: Tensor,
        budget: int | Tensor,
        progress: float | Tensor,
        aux: Tensor | None,
    ) -> Sight:
        """The sight of a decision, as `Order.select` is asked for it."""
        device = candidates.device
        rows = (len(candidates),)
        return cls(
            tokens=reading.tokens,
            confidence=reading.confidence.float(),
            margin=reading.margin.float(),
            entropy=reading.entropy.float(),
            candidates=candidates,
            progress=progress.float() if isinstance(progress, Tensor) else torch.full(rows, progress, device=device),
            budget=budget if isinstance(budget, Tensor) else torch.full(rows, budget, device=device),
            aux=torch.zeros_like(reading.tokens) if aux is None else aux.long(),
        )

    @classmethod
    def joined(cls, parts: Sequence[Sight]) -> Sight:
        """Several, one after the other."""
        return cls(**{f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def __getitem__(self, rows: Tensor | slice) -> Sight:
        return Sight(**{name: column[rows] for name, column in vars(self).items()})

    def to(self, device: torch.device | str) -> Sight:
        """The same, elsewhere."""
        return Sight(**{name: column.to(device) for name, column in vars(self).items()})

    def numbers(self) -> Tensor:
        """[B,L,17] float32, each of the order of 1; visible positions are sure."""
        open_ = self.candidates
        confidence = torch.where(open_, self.confidence, 1.0)
        log_psi = confidence.clamp(min=1e-6).log()
        hidden = torch.where(open_, log_psi, -torch.inf)
        best = hidden.amax(1, keepdim=True).clamp(min=-1e4)
        # The host's own picks: at least as sure as the m-th surest candidate.
        ordered = hidden.sort(dim=1, descending=True).values
        edge = ordered.gather(1, (self.budget.unsqueeze(1) - 1).clamp(0, open_.shape[1] - 1))
        columns = (
            confidence,
            (1.0 - confidence).clamp(min=1e-4).log() * -0.2,
            torch.where(open_, self.margin, 1.0),
            torch.where(open_, self.entropy, 0.0).clamp(max=4.0),
            (log_psi - best).clamp(-5.0, 0.0),
            open_.float(),
            (open_ & (hidden >= edge)).float(),
            self.progress.unsqueeze(1).expand_as(confidence),
            (self.budget.float() * 0.25).unsqueeze(1).expand_as(confidence),
        )
        turns = paced(confidence, open_, self.budget)
        return torch.cat([torch.stack(columns, dim=2), turns.to(confidence.dtype)], dim=2)


@dataclass(frozen=True)
class HeadShape:
    """The size of a head.

    Attributes:
        aux: number of aux states. reach: r, neighbours on each side. width: D of the network, 0 for none.
    """

    aux: int = 1
    reach: int = 4
    width: int = 0


class Network(nn.Module):
    """Sight → [B,L,1], see above; 0 for a fresh one."""

    def __init__(self, shape: HeadShape, seed: int = 0):
        super().__init__()
        channels, width = NUMBERS + _EMBEDDED, shape.width
        self.aux = nn.Embedding(shape.aux, _EMBEDDED)
        self.around = nn.Conv1d(channels, width, 2 * shape.reach + 1, padding=shape.reach)
        self.whole = nn.Linear(2 * channels, width)
        self.inner = nn.Linear(width, width)
        self.value = nn.Linear(width, 1, bias=False)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                spread = 0.3 if name == "aux.weight" else weight[0].numel() ** -0.5 if weight.dim() > 1 else 0.0
                weight.copy_(torch.randn(weight.shape, generator=generator) * spread)
            self.value.weight.zero_()

    def forward(self, sight: Sight) -> Tensor:
        """What it adds to the value of every position."""
        x = torch.cat([sight.numbers(), self.aux(sight.aux)], dim=2)
        open_ = sight.candidates.unsqueeze(2).float()
        candidates = (x * open_).sum(1) / open_.sum(1).clamp(min=1.0)
        whole = self.whole(torch.cat([candidates, x.mean(1)], dim=1))
        z = self.around(x.transpose(1, 2)).transpose(1, 2) + whole.unsqueeze(1)
        value: Tensor = self.value(F.gelu(self.inner(F.gelu(z))))
        return value


class Head(nn.Module):
    """Sight → R̂ [B,L]; 0 for a fresh head.

    Args:
        support: comparisons it was fitted on; the gate asks for it.
    """

    def __init__(self, shape: HeadShape, seed: int = 0, support: int = 0):
        super().__init__()
        self.shape, self.support = shape, support
        self.linear = nn.Linear(len(names(shape.aux, shape.reach)), 1, bias=False)
        nn.init.zeros_(self.linear.weight)
        self.network: Network | None = Network(shape, seed) if shape.width else None

    def features(self, sight: Sight) -> Tensor:
        """φ of every position, [B,L,F]."""
        return basis(sight.numbers(), sight.aux, sight.candidates, self.shape.aux, self.shape.reach)

    def forward(self, sight: Sight) -> Tensor:
        """R̂ of every position."""
        value: Tensor = self.linear(self.features(sight))
        return (value if self.network is None else value + self.network(sight)).squeeze(2)

    def strongest(self, count: int) -> list[tuple[str, float]]:
        """The features with the largest weights, by name; features are of the order of 1."""
        weight = self.linear.weight.detach().squeeze(0).cpu()
        named = names(self.shape.aux, self.shape.reach)
        top = weight.abs().topk(min(count, len(named))).indices.tolist()
        return [(named[place], float(weight[place])) for place in top if weight[place] != 0]

    def to_dict(self) -> dict[str, Any]:
        """Its shape and support, as a policy stores them."""
        return {**asdict(self.shape), "support": self.support}

    @classmethod
    def restored(cls, stored: dict[str, Any], weights: dict[str, Tensor]) -> Head:
        """The head of a policy."""
        shape = {name: number for name, number in stored.items() if name != "support"}
        head = cls(HeadShape(**shape), support=stored["support"])
        head.load_state_dict(weights)
        return head.requires_grad_(False).eval()
