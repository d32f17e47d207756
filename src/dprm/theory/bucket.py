"""The bucket table of the paper on an enumerable chain: shared values for (phase, confidence bin, optional context).

    R̂_z = (1/β) log(S_z / N_z),  S_z = Σ exp(βR_j),  N_z = number of selected events in cell z;  R̂_z = 0 if empty.

Events may carry fractional weight, so that `fit` can hand over infinite data exactly. This is the paper's estimator to
the letter (no baseline, gate min(N/ready, 1)); the production table lives in `dprm.order`.
"""

from collections.abc import Callable, Hashable

import numpy as np

from dprm.theory.chain import Candidate, Chain, Policy, State
from dprm.theory.laws import soft_bon_law

Cell = tuple[Hashable, ...]
Context = Callable[[Chain, State, int], Hashable]


class BucketTable:
    """Log-moment values of cells (phase, bin, context).

    Args:
        beta: β of the exponent; must be the chain's.
        phases, bins: P and B of the cell (min(P−1, ⌊P·progress⌋), min(B−1, ⌊B·ψ_i⌋)).
        context: optional callable (chain, canvas, position) -> hashable, a third coordinate of the cell.
        ready: N_ready of the gate η = min(N/N_ready, 1); 0 trusts every non-empty cell.
    """

    def __init__(
        self, beta: float, *, phases: int = 8, bins: int = 16, context: Context | None = None, ready: float = 0.0
    ) -> None:
        self.beta, self.phases, self.bins, self.context, self.ready = beta, phases, bins, context, ready
        self.count: dict[Cell, float] = {}
        self.total: dict[Cell, float] = {}

    def cell(self, chain: Chain, state: State, position: int) -> Cell:
        """ζ(s, i) = (phase, confidence bin, context)."""
        progress = 1.0 - len(chain.masked(state)) / chain.length
        phase = min(self.phases - 1, int(self.phases * progress))
        level = min(self.bins - 1, int(self.bins * float(chain.psi(state)[position])))
        return (phase, level) if self.context is None else (phase, level, self.context(chain, state, position))

    def add(self, cell: Cell, moment: float, weight: float = 1.0) -> None:
        """Credit `weight` events whose mean of exp(βR) is `moment`."""
        self.count[cell] = self.count.get(cell, 0.0) + weight
        self.total[cell] = self.total.get(cell, 0.0) + weight * moment

    def value(self, cell: Cell) -> float:
        """R̂_z, or 0 for an empty cell."""
        return float(np.log(self.total[cell] / self.count[cell])) / self.beta if self.count.get(cell) else 0.0

    def gate(self, cell: Cell) -> float:
        """η_z = min(N_z / N_ready, 1)."""
        count = self.count.get(cell, 0.0)
        return float(count > 0) if self.ready == 0 else min(count / self.ready, 1.0)

    def bonus(self, chain: Chain, state: State) -> np.ndarray:
        """β Σ_{i∈A} η R̂ per candidate A."""
        cells = {i: self.cell(chain, state, i) for i in chain.masked(state)}
        gain = {i: self.beta * self.gate(z) * self.value(z) for i, z in cells.items()}
        return np.array([sum(gain[i] for i in A) for A in chain.candidates(state)])

    def hard(self, chain: Chain) -> Policy:
        """argmax of log ψ + βηR̂ over the full candidate set (the rule `top_m`)."""
        return lambda state: chain.argmax(chain.log_psi(state) + self.bonus(chain, state))

    def soft_bon(self, chain: Chain, draws: int) -> Policy:
        """i.i.d. Soft-BoN with table values: explores even while the table is empty."""
        return lambda state: soft_bon_law(chain.q0(state), np.exp(self.bonus(chain, state)), draws)

    def fit(self, chain: Chain, policy: Policy) -> None:
        """Infinite on-policy data: every (s, i) selected by `policy`, weighted by its probability."""
        moment = chain.moment(policy)
        for level in chain.occupancy(policy)[:-1]:
            for state, mass in level.items():
                for A, share, future in zip(chain.candidates(state), policy(state), chain.lookahead(moment, state)):
                    if share > 0:
                        for i in A:
                            self.add(self.cell(chain, state, i), float(future), mass * float(share))

    def learn(self, chain: Chain, policy: Policy, trajectories: int, rng: np.random.Generator) -> None:
        """Algorithm 1: run trajectories, credit every revealed position with the terminal reward."""
        for _ in range(trajectories):
            events, terminal = sample_path(chain, policy, rng)
            for state, A in events:
                for i in A:
                    self.add(self.cell(chain, state, i), float(np.exp(self.beta * chain.reward[terminal])))


def sample_path(chain: Chain, policy: Policy, rng: np.random.Generator) -> tuple[list[tuple[State, Candidate]], State]:
    """One trajectory under a policy: its (state, candidate) events and the complete sequence."""
    state, events = chain.start, []
    for _ in range(chain.steps):
        candidates = chain.candidates(state)
        A = candidates[int(rng.choice(len(candidates), p=policy(state)))]
        events.append((state, A))
        branches = chain.branches(state, A)
        state = branches[int(rng.choice(len(branches), p=[p for p, _ in branches]))][1]
    return events, state
