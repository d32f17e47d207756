"""A task small enough to learn in a test: the first answer token should repeat the prompt."""

import torch

from dprm.data.draws import Draws
from dprm.train.transformer import Config, Transformer

MASK = 5


class Wishes:
    """Reward 1 for the wish, 0.1 for a token next to it, 0 otherwise."""

    mask_id = MASK

    def __init__(self, answers=4):
        self.answers = answers

    def draw(self, refresh, count):
        index = Draws("wishes", refresh).below(5, count)
        canvases = torch.full((count, 1 + self.answers), MASK)
        canvases[:, 0] = index
        return index, canvases

    def reward(self, index, tokens):
        missed = (tokens[:, 1].cpu() - index).abs()
        return torch.where(missed == 0, 1.0, torch.where(missed == 1, 0.1, 0.0)).double()


def beginner(seed=1):
    """A model that knows nothing yet."""
    return Transformer(Config(6, width=32, depth=2, heads=2), seed=seed).requires_grad_(False)
