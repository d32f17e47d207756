"""A population of prompts on which the truth about the order is known: an enumerable chain, posed many times."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model
from dprm.host.host import SPLITS, Host, Problems
from dprm.order.noise import mix, mix_rows


class Enumerable(Protocol):
    """A host small enough to enumerate, such as `dprm.theory.Chain`."""

    length: int
    vocab: int

    def denoiser(self) -> Model:
        """Tokens [B,L] → logits [B,L,V]."""

    def reward_of(self, tokens: Tensor) -> Tensor:
        """[B] rewards of complete sequences."""


class Population(Host):
    """One chain posed to many prompts.

    A share `sensitive` of the prompts is judged by the chain's reward, a share `luck` by a coin that falls anew for
    every output, the others by a coin of their own that no output changes.
    """

    name, domain = "population", "an enumerable chain"

    def __init__(self, chain: Enumerable, sensitive: float, luck: float, temperature: float = 0.0):
        self.chain, self.sensitive, self.luck = chain, sensitive, luck
        self.decoding = Decoding(mask_id=chain.vocab, temperature=temperature)
        self.weights = "enumerable"

    def model(self) -> Model:
        return self.chain.denoiser()

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        """Prompts that differ in their key alone."""
        canvas = torch.full((count, self.chain.length), self.chain.vocab)
        key = mix_rows(torch.arange(count), mix(seed, SPLITS.index(split))) & (2**62 - 1)
        return Problems(canvas, key, range(count))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        place_value = self.chain.vocab ** torch.arange(self.chain.length)
        kind = uniform_of(mix_rows(problems.key, 1))
        anew = uniform_of(mix_rows(problems.key ^ mix_rows((tokens * place_value).sum(1), 2), 3))
        own = uniform_of(mix_rows(problems.key, 4))
        coin = torch.where(kind < self.sensitive + self.luck, anew, own) < 0.5
        return torch.where(kind < self.sensitive, self.chain.reward_of(tokens), coin.float())


def uniform_of(word: Tensor) -> Tensor:
    """Numbers in [0, 1) from well-mixed integers."""
    return (word >> 11 & (2**53 - 1)).double() / 2**53
