"""The one bidirectional transformer that all small hosts share.

    h⁰ = E[x] + Σ_s S_s[side_s],   h ← h + Attention(norm h),   h ← h + SwiGLU(norm h),   logits = W · norm hᴺ

No time embedding: the number of masks is visible in the canvas itself. No biases, no dropout. Queries and keys are
normalised, which keeps attention logits bounded at the high learning rates that short trainings need.
Shapes: B rows, L canvas positions, P prefix positions, D width, H heads, V vocabulary.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Config:
    """The shape of a transformer.

    Attributes:
        vocabulary: V, the mask token included.
        width, depth, heads: D, number of layers, H.
        hidden: width of the SwiGLU; 0 means 3·D.
        tied: the output matrix is the embedding matrix.
        rotary: rotary positions. Without them a position is known only by its sides.
        sides: static properties of canvas positions, each a tuple of categories, one a position: row, column and box of
            a Sudoku cell, the stream of a protein token. A canvas may be shorter than they are.
        attract: positions of one category attract each other: head h adds w_hs to the attention logit of two positions
            that agree in side s. For sides with few categories, whose meaning is "these belong together".
    """

    vocabulary: int
    width: int = 256
    depth: int = 8
    heads: int = 8
    hidden: int = 0
    tied: bool = False
    rotary: bool = True
    sides: tuple[tuple[int, ...], ...] = ()
    attract: bool = False

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "depth", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: expected at least 1")
        if self.width % self.heads or self.width // self.heads % 2:
            raise ValueError(f"width {self.width} does not give {self.heads} heads of an even size")
        if len({len(side) for side in self.sides}) > 1:
            raise ValueError(f"sides have lengths {[len(side) for side in self.sides]}: expected one length")
        # As read back from JSON, where tuples are lists.
        object.__setattr__(self, "sides", tuple(tuple(side) for side in self.sides))
        object.__setattr__(self, "hidden", self.hidden or 3 * self.width)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, such that Config(**config.to_dict()) == config."""
        return asdict(self)


class Transformer(nn.Module):
    """Tokens [B,L] → logits [B,L,V]."""

    sides: Tensor
    membership: Tensor
    owner: Tensor

    def __init__(self, config: Config, seed: int = 0):
        """Args: seed of the initial weights; the global random state is left as it was."""
        super().__init__()
        self.config = config
        # Modules draw their own first weights, which are not used, from the global generator.
        with torch.random.fork_rng(devices=[]):
            self.embedding = nn.Embedding(config.vocabulary, config.width)
            self.side_embeddings = nn.ModuleList(nn.Embedding(max(side) + 1, config.width) for side in config.sides)
            self.layers = nn.ModuleList(Layer(config) for _ in range(config.depth))
            self.norm = nn.RMSNorm(config.width)
            self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight
        membership, owner = _membership(config.sides if config.attract else ())
        self.register_buffer("sides", torch.tensor(config.sides, dtype=torch.int64), persistent=False)
        self.register_buffer("membership", membership, persistent=False)
        self.register_buffer("owner", owner, persistent=False)
        self._initialise(seed)

    def _initialise(self, seed: int) -> None:
        """Normal(0, 0.02); matrices that write to the residual stream are smaller by √(2·depth)."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.dim() == 2:
                    writes = name.endswith(("attention.out.weight", "mlp.down.weight"))
                    scale = 0.02 / (2 * self.config.depth) ** 0.5 if writes else 0.02
                    weight.copy_(torch.randn(weight.shape, generator=generator) * scale)

    def parameter_count(self) -> int:
        """Trainable numbers, tied ones counted once."""
        return sum(weight.numel() for weight in self.parameters())

    def forward(self, tokens: Tensor, prefix: Tensor | None = None) -> Tensor:
        """
        Args:
            tokens: [B,L] int64.
            prefix: [B,P,D] embeddings that the canvas attends to, such as image patches; they get no logits.
        """
        length = tokens.shape[1]
        h = self.embedding(tokens)
        for index, embedding in enumerate(self.side_embeddings):
            h = h + embedding(self.sides[index, :length])
        if prefix is not None:
            h = torch.cat([prefix.to(h.dtype), h], dim=1)
        rotation = rotary(h.shape[1], self.config.width // self.config.heads, h.device) if self.config.rotary else None
        members = None
        if self.config.attract:
            # Prefix positions belong to no category.
            members = F.pad(self.membership[:length], (0, 0, h.shape[1] - length, 0)), self.owner
        for layer in self.layers:
            h = layer(h, rotation, members)
        # In float32: orders compare confidences close to 1, and half precision would make ties of them.
        with torch.autocast(h.device.type, enabled=False):
            logits: Tensor = self.head(self.norm(h[:, -length:].float()))
            return logits


class Layer(nn.Module):
    """Attention and SwiGLU, each behind a norm and added to the stream."""

    def __init__(self, config: Config):
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width)
        self.attention = Attention(config)
        self.mlp_norm = nn.RMSNorm(config.width)
        self.mlp = SwiGLU(config)

    def forward(self, h: Tensor, rotation: Pair | None, members: Pair | None) -> Tensor:
        h = h + self.attention(self.attention_norm(h), rotation, members)
        h = h + self.mlp(self.mlp_norm(h))
        return h


class Attention(nn.Module):
    """Softmax(q̂ k̂ᵀ/√d + Σ_s w_hs·[sides agree]) v over all positions; q̂ and k̂ are normalised per head, then rotated."""

    # At the start one head in S + 1 looks at each side, with most of its weight, and one at everything.
    PULL = 4.0

    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.query_norm = nn.RMSNorm(config.width // config.heads)
        self.key_norm = nn.RMSNorm(config.width // config.heads)
        if config.attract:
            side = torch.arange(len(config.sides))
            head = torch.arange(config.heads).unsqueeze(1) % (len(side) + 1)
            self.pull = nn.Parameter(((head == side) * self.PULL).flatten())

    def forward(self, h: Tensor, rotation: Pair | None, members: Pair | None) -> Tensor:
        rows, length, width = h.shape
        q, k, v = self.qkv(h).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k = self.query_norm(q.float()), self.key_norm(k.float())
        scale = q.shape[-1] ** -0.5
        if rotation is not None:
            q, k = rotate(q, *rotation), rotate(k, *rotation)
        if members is not None:
            # As further dimensions of q and k: a bias matrix would rule out the fast kernels.
            membership, owner = members
            pull = self.pull.view(self.heads, 1, -1)[..., owner] * (membership / scale)
            q = torch.cat([q, pull.expand(rows, -1, -1, -1)], dim=-1)
            k = torch.cat([k, membership.expand(rows, self.heads, -1, -1)], dim=-1)
        # All three must agree in type for the fused kernels.
        mixed = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, scale=scale)
        written: Tensor = self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return written


class SwiGLU(nn.Module):
    """W_down (silu(W_gate h) ⊙ W_up h)."""

    def __init__(self, config: Config):
        super().__init__()
        self.up = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        gate, up = self.up(h).chunk(2, dim=-1)
        written: Tensor = self.down(F.silu(gate) * up)
        return written


def _membership(sides: tuple[tuple[int, ...], ...]) -> Pair:
    """[L, M] the one-hot categories of every position in all sides, and [M] the side of every column.

    Fused kernels want M to be a multiple of 8: the rest is zeros.
    """
    parts = [F.one_hot(torch.tensor(side)).float() for side in sides]
    columns = sum(part.shape[1] for part in parts)
    owner = [index for index, part in enumerate(parts) for _ in range(part.shape[1])] + [0] * (-columns % 8)
    membership = F.pad(torch.cat(parts, dim=1), (0, -columns % 8)) if parts else torch.zeros(0)
    return membership, torch.tensor(owner, dtype=torch.int64)


def rotary(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin [L, size/2] of position · 10000^(−2i/size)."""
    frequency = 10_000.0 ** (-torch.arange(0, size, 2, dtype=torch.float32, device=device) / size)
    angle = torch.outer(torch.arange(length, dtype=torch.float32, device=device), frequency)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (x_i, x_{i+size/2}) of every head by the angle of their position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
