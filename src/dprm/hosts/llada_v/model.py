"""The shared transformer with a picture before its canvas.

    patch_p = W · (x_p/127.5 − 1) + e_p        p = 1 … ⌊S/k⌋², x_p the k·k·3 numbers of a patch
    logits  = Transformer(canvas, prefix = patches)

What is left of the picture beside whole patches is its margin, which is cut off on all sides.
Shapes: B rows, S the side of a picture, k of a patch, P patches, L positions, V vocabulary, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dprm.train.transformer import Config, Transformer


@dataclass(frozen=True)
class PictureConfig(Config):
    """The shape of the transformer, and of the pictures: their side, and that of a patch."""

    picture: int = 32
    patch: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.patch <= self.picture:
            raise ValueError(f"patch is {self.patch}: expected 1 … {self.picture}, the side of the picture")

    @property
    def across(self) -> int:
        """√P, the patches of a row."""
        return self.picture // self.patch


class PictureTransformer(Transformer):
    """Tokens [B,L] and pictures [B,S,S,3] uint8 → logits [B,L,V]."""

    config: PictureConfig

    def __init__(self, config: PictureConfig, seed: int = 0):
        # The place of a patch is an embedding; first weights are drawn for all matrices alike.
        super().__init__(config, seed)
        with torch.random.fork_rng(devices=[]):
            self.patch_matrix = nn.Linear(3 * config.patch**2, config.width, bias=False)
            self.patch_place = nn.Embedding(config.across**2, config.width)
        self._initialise(seed)

    def forward(self, tokens: Tensor, prefix: Tensor | None = None) -> Tensor:
        """Args: prefix: the pictures."""
        return super().forward(tokens, None if prefix is None else self.patches(prefix))

    def patches(self, pictures: Tensor) -> Tensor:
        """[B,P,D] the embedded patches of pictures, row by row."""
        size, across = self.config.patch, self.config.across
        margin = (self.config.picture - across * size) // 2
        whole = slice(margin, margin + across * size)
        rows = pictures[:, whole, whole].reshape(-1, across, size, across, size, 3)
        cut = rows.transpose(2, 3).reshape(-1, across**2, 3 * size**2)
        embedded: Tensor = self.patch_matrix(cut.float() / 127.5 - 1.0) + self.patch_place.weight
        return embedded


def build(config: PictureConfig, seed: int = 0) -> PictureTransformer:
    """The model of a shape."""
    return PictureTransformer(config, seed)
