"""A host small enough to learn in a test: the first answer token should repeat the prompt."""

import torch

from dprm.decode import Decoding
from dprm.host.host import Host, Problems
from dprm.train.denoiser import Denoiser
from dprm.train.transformer import Config, Transformer

MASK = 5


class Wishes(Host):
    """Reward 1 for the wish, 0.1 for a token next to it, 0 otherwise."""

    name = "wishes"

    def __init__(self, answers=4):
        self.answers = answers
        self.decoding = Decoding(mask_id=MASK, temperature=1.0)

    def model(self):
        return Denoiser(beginner())

    def problems(self, split, count, seed=0):
        wish = torch.arange(count) % 5
        canvas = torch.full((count, 1 + self.answers), MASK)
        canvas[:, 0] = wish
        return Problems(canvas, torch.arange(count) + 1000 * seed + 10_000 * self.answers, wish.tolist())

    def judge(self, problems, tokens):
        missed = (tokens[:, 1] - torch.tensor(problems.facts)).abs()
        return torch.where(missed == 0, 1.0, torch.where(missed == 1, 0.1, 0.0))


class Indifferent(Wishes):
    """The same reward for every answer."""

    def judge(self, problems, tokens):
        return torch.full((len(tokens),), 0.1)


def beginner(seed=1):
    """A model that knows nothing yet."""
    return Transformer(Config(6, width=32, depth=2, heads=2), seed=seed)
