"""Whether the order module computes, on a device, what an enumerable chain says it must.

For every canvas s of a random chain the exact values R*(·; s) are put into a table with a cell for each position of
each canvas. Then, in float32 and on that device:

    reading    p(tokens) = ψ(s)                              empty      argmax ψ, the host's own order
    top_m      argmax log ψ + β R*, the hard rule            soft_bon   the law E π̂(· | s) of N = 8 draws
    decode     the mean reward of the confidence order       stats      sums of exp(β(R − R_max)), against float64
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from dprm.decode import decode
from dprm.order import Cells, Gate, Order, Policy, Reading, Stats, Table, read
from dprm.theory.chain import Chain, State
from dprm.theory.examples import random_chain

# Draws of one canvas, how many of them a rule makes, and how many standard deviations their frequencies may be off.
DRAWS, SHORTLIST, SIGMAS = 20_000, 8, 5.0
# Scores nearer to each other than this may be a tie in float32.
_TIE = 1e-5


@dataclass(frozen=True)
class Check:
    """One comparison: how far off it was, and how far it may be."""

    name: str
    off: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.off <= self.limit


def self_test(device: torch.device | str, seed: int = 0, backend: str = "auto") -> list[Check]:
    """Every comparison, on one device; `backend` is that of `read`."""
    chain = random_chain(seed, length=4, vocab=3, beta=3.0, noise=0.3)
    bench = _Bench(chain, torch.device(device), backend)
    host, hard = bench.choices(bench.order(0.0)), bench.choices(bench.order(1.0))
    return [
        Check("reading", bench.reading_off(), 1e-5),
        Check("empty", bench.disagreement(host, chain.log_psi), 0.0),
        Check("top_m", bench.disagreement(hard, lambda s: chain.log_psi(s) + chain.beta * chain.R_star(s)), 0.0),
        Check("soft_bon", bench.law_off(), SIGMAS),
        Check("decode", bench.decode_off(), 1e-6),
        Check("stats", bench.stats_off(seed), 1e-6),
    ]


class _Bench:
    """A chain, all its canvases that have something to choose, and what the order module says of them."""

    def __init__(self, chain: Chain, device: torch.device, backend: str):
        self.chain, self.device = chain, device
        symbols = range(chain.vocab + 1)
        self.states: list[State] = [s for s in product(symbols, repeat=chain.length) if len(chain.masked(s)) > 1]
        self.canvas = torch.tensor(self.states, device=device)
        self.open = self.canvas == chain.vocab
        self.reading: Reading = read(chain.denoiser()(self.canvas), backend=backend)
        self.cell = torch.arange(self.canvas.numel(), device=device).view_as(self.canvas)

    def order(self, guidance: float, rule: str = "top_m") -> Order:
        """An order that acts on the exact values of every canvas."""
        value = torch.zeros(self.canvas.shape, dtype=torch.float64)
        for row, state in enumerate(self.states):
            value[row, list(self.chain.masked(state))] = torch.from_numpy(self.chain.R_star(state)).double()
        return Order.from_policy(
            Policy(
                table=Table(value.flatten(), torch.ones(value.numel(), dtype=torch.float64)),
                cells=Cells(1, 1, value.numel()),
                beta=self.chain.beta,
                guidance=guidance,
                signal={"name": "confidence"},
                baseline="none",
                reward_range=self.chain.reward_range,
                gate=Gate(0, 0, 1),
                step=0,
                rule=rule,
                shortlist=(SHORTLIST, SHORTLIST, 1),
            )
        )

    def choices(self, order: Order) -> Tensor:
        """[S] the position that is revealed first on every canvas."""
        return order.select(self.reading, self.open, 1, 0.0, aux=self.cell).mask.long().argmax(1).cpu()

    def reading_off(self) -> float:
        exact = torch.tensor(np.stack([self.chain.psi(state) for state in self.states]))
        return float((self.reading.confidence.cpu().double() - exact)[self.open.cpu()].abs().max())

    def disagreement(self, choices: Tensor, score: Callable[[State], np.ndarray]) -> float:
        """Share of canvases on which another position was chosen than the one of the largest exact score."""
        wrong = 0
        for state, choice in zip(self.states, choices.tolist()):
            exact = dict(zip(self.chain.masked(state), score(state).tolist()))
            wrong += exact.get(choice, -np.inf) < max(exact.values()) - _TIE
        return wrong / len(self.states)

    def law_off(self) -> float:
        """How many standard deviations the frequencies of Soft-BoN on the first canvas are off, at most."""
        row = self.states.index(self.chain.start)
        rows = torch.full((DRAWS,), row, device=self.device)
        seeds = torch.arange(DRAWS, device=self.device)
        chosen = self.order(1.0, "soft_bon").select(
            self.reading[rows], self.open[rows], 1, 0.0, aux=self.cell[rows], seed=seeds
        )
        seen = chosen.mask.double().mean(0).cpu().numpy()
        law = self.chain.soft_bon(SHORTLIST)(self.chain.start)
        return float((np.abs(seen - law) / np.sqrt(law * (1 - law) / DRAWS)).max())

    def decode_off(self) -> float:
        start = torch.tensor([self.chain.start], device=self.device)
        result = decode(self.chain.denoiser(), start, Order(), mask_id=self.chain.vocab, budget=1)
        earned = float(self.chain.reward_of(result.tokens)[0])
        return abs(earned - self.chain.expected_reward(self.chain.confidence))

    def stats_off(self, seed: int) -> float:
        """Largest relative error of the sums, gathered in two halves."""
        generator = np.random.default_rng(seed)
        cell, reward = generator.integers(0, 5, 1000), generator.random(1000)
        halves = []
        for half in (slice(0, 300), slice(300, None)):
            stats = Stats(5, self.chain.beta)
            stats.add(torch.from_numpy(cell[half]).to(self.device), torch.from_numpy(reward[half]).to(self.device))
            halves.append(stats)
        sums = (halves[1] + halves[0]).sums[1].numpy()
        exact = np.bincount(cell, np.exp(self.chain.beta * (reward - 1.0)))
        return float(np.abs(sums / exact - 1).max())
