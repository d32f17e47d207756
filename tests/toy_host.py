"""A host in thirty lines: the myopic chain, posed many times under different keys."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from dprm.decode import Decoding
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.metrics import Metric
from dprm.theory import myopic

CHAIN = myopic(beta=2.0)


class ToyHost(Host):
    """Every problem is the same four bits; confidence earns 0, another beginning 1."""

    name, domain, ordered = "toy", "four bits", "positions"
    decoding = Decoding(mask_id=CHAIN.vocab)
    metrics = (Metric("reward"),)

    def model(self):
        return CHAIN.denoiser()

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}: expected one of {', '.join(SPLITS)}")
        first = SPLITS.index(split) * 100_000
        canvas = torch.full((count, CHAIN.length), CHAIN.vocab)
        return Problems(canvas, torch.arange(count) + first, list(range(count)))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        return CHAIN.reward_of(tokens)

    def read_problems(self, path: Path) -> tuple[Problems, list[str]]:
        lines = path.read_text().splitlines()
        return self.problems("test", sum(line == "ok" for line in lines)), [line for line in lines if line != "ok"]

    def show(self, token: int) -> str:
        return "·" if token == CHAIN.vocab else str(token)
