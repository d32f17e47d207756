"""A denoiser in a few lines: row-wise, so that a row's logits cannot depend on its batch."""

import torch
from torch import Tensor

VOCABULARY, MASK = 7, 6


class MockDenoiser:
    """Logits from a fixed random context of neighbours. Counts its calls and the rows it saw."""

    def __init__(self, seed: int = 0, sharpness: float = 2.0):
        generator = torch.Generator().manual_seed(seed)
        self.left, self.right = (torch.randn(VOCABULARY, VOCABULARY, generator=generator) * sharpness for _ in range(2))
        self.place = torch.randn(64, VOCABULARY, generator=generator)
        self.calls = 0

    def __call__(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        return self.left[tokens.roll(1, 1)] + self.right[tokens.roll(-1, 1)] + self.place[: tokens.shape[1]]


def masked_canvas(rows: int, length: int, prompt: int = 2) -> Tensor:
    """Canvases with a visible prompt and everything else masked."""
    canvas = torch.full((rows, length), MASK)
    canvas[:, :prompt] = torch.arange(rows * prompt).view(rows, prompt) % MASK
    return canvas
