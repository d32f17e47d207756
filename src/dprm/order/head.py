"""A learned head: the value of revealing each position, from what a decision shows anyway. No denoiser call is added.

    x_i = [numbers of position i, its token, its aux state, its place]           one row of the Sight
    z_i = W · (x_{i−r} … x_{i+r})                                                what stands around it
    z ← z + Attention(norm z),   z ← z + MLP(norm z),   R̂_i = w · norm z_i        what goes on elsewhere

The last layer starts at 0: a head that was not fitted leaves the host's order as it is.
Shapes: B rows, L positions, C channels, D width.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprm.order.reading import Reading

# Confidence, −log(1 − confidence), margin, entropy, log ratio to the surest candidate, candidate, native, progress, m.
NUMBERS = 9
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

    def __getitem__(self, rows: Tensor | slice) -> Sight:
        return Sight(**{name: column[rows] for name, column in vars(self).items()})

    def to(self, device: torch.device | str) -> Sight:
        """The same, elsewhere."""
        return Sight(**{name: column.to(device) for name, column in vars(self).items()})

    def numbers(self) -> Tensor:
        """[B,L,9] float32, each of the order of 1; visible positions are sure."""
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
        return torch.stack(columns, dim=2)


@dataclass(frozen=True)
class HeadShape:
    """The size of a head.

    Attributes:
        length: L of the canvases it is for. vocabulary, aux: numbers of tokens and of aux states.
        width, heads: D, attention heads. reach: r, neighbours on each side.
    """

    length: int
    vocabulary: int
    aux: int = 1
    width: int = 48
    heads: int = 4
    reach: int = 3


class Head(nn.Module):
    """Sight → R̂ [B,L]; 0 for a fresh head.

    Args:
        support: comparisons it was fitted on; the gate asks for it.
    """

    def __init__(self, shape: HeadShape, seed: int = 0, support: int = 0):
        super().__init__()
        self.shape, self.support = shape, support
        width = shape.width
        self.token = nn.Embedding(shape.vocabulary, _EMBEDDED)
        self.aux = nn.Embedding(shape.aux, _EMBEDDED)
        self.place = nn.Embedding(shape.length, _EMBEDDED)
        channels = NUMBERS + 3 * _EMBEDDED
        self.around = nn.Conv1d(channels, width, 2 * shape.reach + 1, padding=shape.reach)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.mixed = nn.Linear(width, width, bias=False)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)
        self.value = nn.Linear(width, 1, bias=False)
        self._initialise(seed)

    def _initialise(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.dim() > 1:
                    size = weight[0].numel() ** -0.5 if "token aux place".find(name.split(".")[0]) < 0 else 0.5
                    weight.copy_(torch.randn(weight.shape, generator=generator) * size)
                elif "norms" not in name:
                    weight.zero_()
            self.value.weight.zero_()

    def forward(self, sight: Sight) -> Tensor:
        """R̂ of every position."""
        length = sight.tokens.shape[1]
        if length > self.shape.length:
            raise ValueError(f"the head is for {self.shape.length} positions: the canvas has {length}")
        token = self.token(sight.tokens.clamp(max=self.shape.vocabulary - 1))
        place = self.place.weight[:length].expand(len(sight.tokens), -1, -1)
        x = torch.cat([sight.numbers(), token, self.aux(sight.aux), place], dim=2)
        z = self.around(x.transpose(1, 2)).transpose(1, 2)
        z = z + self._attend(self.norms[0](z))
        z = z + self.outer(F.gelu(self.inner(self.norms[1](z))))
        value: Tensor = self.value(self.norms[2](z)).squeeze(2)
        return value

    def _attend(self, z: Tensor) -> Tensor:
        rows, length, width = z.shape
        parts = self.mix(z).view(rows, length, 3, self.shape.heads, -1).permute(2, 0, 3, 1, 4)
        met = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        mixed: Tensor = self.mixed(met.transpose(1, 2).reshape(rows, length, width))
        return mixed

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
