"""A denoiser of cells whose cost grows with the genes, not with their square.

    u = Σ_g T[g, x_g]/√G      z⁰ = norm u,  z ← z + SwiGLU(norm z)      logits_g = O_g · norm zᴺ + b_g

Every gene in every bin says something (T), masked ones included; a small network mixes it; every gene reads the mixture
in its own way (O). Attention over a thousand genes would cost a hundred times as much, and a few thousand cells would
not teach it more. Shapes: B cells, G genes, V vocabulary, D width.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from dprm.hosts.dcm.bins import Bins
from dprm.train.transformer import SwiGLU


@dataclass(frozen=True)
class CellConfig:
    """The shape of a cell model, and what its genes and bins are.

    Attributes:
        genes, cuts: see `Bins`. width, depth: D and the layers that mix.
    """

    genes: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    width: int = 96
    depth: int = 3
    tied: bool = False

    def __post_init__(self) -> None:
        # As read back from JSON, where tuples are lists.
        object.__setattr__(self, "genes", tuple(self.genes))
        object.__setattr__(self, "cuts", tuple(self.cuts))

    @property
    def bins(self) -> Bins:
        """Its genes and cuts."""
        return Bins(self.genes, self.cuts)

    @property
    def vocabulary(self) -> int:
        """Zero, the bins, and the mask."""
        return self.bins.top + 2

    @property
    def mask_id(self) -> int:
        """The token that hides a gene."""
        return self.bins.top + 1

    @property
    def hidden(self) -> int:
        """Width of the SwiGLU."""
        return 3 * self.width

    def shaped(self, width: int | None, depth: int | None) -> CellConfig:
        """In another size."""
        return replace(self, width=width or self.width, depth=depth or self.depth)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, such that CellConfig(**config.to_dict()) == config."""
        return asdict(self)


class CellModel(nn.Module):
    """Tokens [B,G] → logits [B,G,V]."""

    first: Tensor

    def __init__(self, config: CellConfig, seed: int = 0):
        super().__init__()
        self.config = config
        genes, columns = len(config.genes), config.vocabulary - 1
        with torch.random.fork_rng(devices=[]):
            self.said = nn.Embedding(genes * config.vocabulary, config.width)
            self.norm = nn.RMSNorm(config.width)
            self.norms = nn.ModuleList(nn.RMSNorm(config.width) for _ in range(config.depth))
            self.mixing = nn.ModuleList(SwiGLU(config) for _ in range(config.depth))  # type: ignore[arg-type]
            self.last = nn.RMSNorm(config.width)
            self.heard = nn.Linear(config.width, genes * columns, bias=False)
            self.bias = nn.Parameter(torch.zeros(genes * columns))
        self.register_buffer("first", torch.arange(genes) * config.vocabulary, persistent=False)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.dim() == 2:
                    scale = 0.02 / (2 * config.depth) ** 0.5 if name.endswith("down.weight") else 0.02
                    weight.copy_(torch.randn(weight.shape, generator=generator) * scale)

    def parameter_count(self) -> int:
        """Trainable numbers."""
        return sum(weight.numel() for weight in self.parameters())

    def forward(self, tokens: Tensor) -> Tensor:
        heard = nn.functional.embedding_bag(tokens + self.first, self.said.weight, mode="sum")
        z = self.norm(heard)
        for norm, mix in zip(self.norms, self.mixing, strict=True):
            z = z + mix(norm(z))
        with torch.autocast(z.device.type, enabled=False):
            logits = self.heard(self.last(z.float())) + self.bias
        logits = logits.view(len(tokens), len(self.config.genes), -1)
        # The mask is never what a gene holds.
        return nn.functional.pad(logits, (0, 1), value=-1e4)
