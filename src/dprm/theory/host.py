"""The dynamics of an exactly enumerable host: canvases, reveals, and the laws an order induces.

Symbols. s: canvas (tuple of L tokens, V is the mask). A: candidate, a tuple of min(m, masked) positions revealed
together. ψ: base score. s^A: the canvas after the reveal. R: terminal reward. A policy is any callable s -> law over
`candidates(s)`. Knows nothing about tilts: that is `dprm.theory.chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from dprm.theory.canvas import Conditionals, check_conditionals, check_joint, check_reward, conditionals_of

if TYPE_CHECKING:
    import torch

State = tuple[int, ...]
Candidate = tuple[int, ...]
Policy = Callable[[State], np.ndarray]
Path = tuple[tuple[State, Candidate], ...]


class Host:
    """A masked-diffusion decoder small enough to enumerate. Arguments as in `Chain`."""

    def __init__(
        self,
        joint: np.ndarray | None,
        reward: np.ndarray | None,
        conditionals: Conditionals | None,
        tokens: str,
        m: int,
        psi: Callable[[State], np.ndarray] | None,
        reward_range: tuple[float, float],
    ) -> None:
        self.reward = check_reward(reward, reward_range)
        self.length, self.vocab = self.reward.ndim, self.reward.shape[0]
        if joint is None and conditionals is None:
            raise ValueError("give joint or conditionals: a chain needs a denoiser")
        self.joint = None if joint is None else check_joint(joint)
        if self.joint is not None and self.joint.shape != self.reward.shape:
            raise ValueError(f"reward has shape {self.reward.shape}, joint has shape {self.joint.shape}")
        if tokens not in ("greedy", "sampled"):
            raise ValueError(f"tokens must be 'greedy' or 'sampled', got {tokens!r}")
        if not 1 <= m <= self.length:
            raise ValueError(f"m must be in 1..L={self.length}, got {m}")
        if conditionals is not None:
            self.conditionals = check_conditionals(conditionals, self.length, self.vocab)
        elif self.joint is not None:
            self.conditionals = conditionals_of(self.joint)
        self.tokens, self.m, self.reward_range = tokens, int(m), reward_range
        self._custom_psi = psi
        self._confidence_table = self.conditionals.max(-1)
        self._candidates: dict[tuple[int, ...], tuple[Candidate, ...]] = {}

    # Reveals ----------------------------------------------------------------------------------------------------

    @property
    def start(self) -> State:
        """The fully masked canvas."""
        return (self.vocab,) * self.length

    @property
    def steps(self) -> int:
        """Horizon T = ⌈L/m⌉."""
        return -(-self.length // self.m)

    def masked(self, state: State) -> tuple[int, ...]:
        """M(s): the masked positions."""
        if len(state) != self.length:
            raise ValueError(f"a canvas has L={self.length} tokens, got {state}")
        return tuple(i for i, token in enumerate(state) if token == self.vocab)

    def candidates(self, state: State) -> tuple[Candidate, ...]:
        """All sets of min(m, |M(s)|) masked positions; for m=1 these are (i,), i ∈ M(s)."""
        masked = self.masked(state)
        if masked not in self._candidates:
            self._candidates[masked] = tuple(combinations(masked, min(self.m, len(masked)))) if masked else ()
        return self._candidates[masked]

    def psi(self, state: State) -> np.ndarray:
        """ψ_i(s), shape [L]."""
        return np.asarray(self._confidence_table[state] if self._custom_psi is None else self._custom_psi(state))

    def log_psi(self, state: State) -> np.ndarray:
        """log ψ(A; s) = Σ_{i∈A} log ψ_i(s), per candidate."""
        logs = np.log(self.psi(state))
        return np.array([sum(logs[i] for i in A) for A in self.candidates(state)])

    def branches(self, state: State, candidate: Candidate) -> list[tuple[float, State]]:
        """The (probability, s^A) pairs after revealing A: one if tokens are greedy, up to V^m if sampled."""
        rows = self.conditionals[state]
        choices: list[list[tuple[int, float]]] = []
        for i in candidate:
            if self.tokens == "greedy":
                choices.append([(int(rows[i].argmax()), 1.0)])
            else:
                choices.append([(y, float(p)) for y, p in enumerate(rows[i]) if p > 0])
        result = []
        for picks in product(*choices):
            canvas, probability = list(state), 1.0
            for i, (token, p) in zip(candidate, picks):
                canvas[i] = token
                probability *= p
            result.append((probability, tuple(canvas)))
        return result

    # Laws of a policy -------------------------------------------------------------------------------------------

    def law(self, policy: Policy, state: State) -> np.ndarray:
        """policy(s), checked to be a law over `candidates(s)`."""
        law = np.asarray(policy(state), dtype=np.float64)
        expected = len(self.candidates(state))
        if law.shape != (expected,) or not (law.min() >= 0 and abs(law.sum() - 1.0) <= 1e-9):
            raise ValueError(
                f"policy must return a law over the {expected} candidates of canvas {state}: got {law.tolist()}"
            )
        return law

    def occupancy(self, policy: Policy) -> list[dict[State, float]]:
        """The law of S_t for t = 0..T, as {canvas: probability}; only reachable canvases appear."""
        levels = [{self.start: 1.0}]
        for _ in range(self.steps):
            after: dict[State, float] = {}
            for state, mass in levels[-1].items():
                for A, share in zip(self.candidates(state), self.law(policy, state)):
                    if share > 0:
                        for p, canvas in self.branches(state, A):
                            after[canvas] = after.get(canvas, 0.0) + mass * float(share) * p
            levels.append(after)
        return levels

    def terminal_law(self, policy: Policy) -> np.ndarray:
        """The law of X_T under a policy, shape (V,)*L."""
        law = np.zeros(self.reward.shape)
        for state, mass in self.occupancy(policy)[-1].items():
            law[state] = mass
        return law

    def path_law(self, policy: Policy) -> dict[Path, float]:
        """The law of (S_0, A_0, S_1, A_1, ..., S_T) as {path: probability}; the last pair is (S_T, ())."""
        paths: dict[Path, float] = {}

        def walk(prefix: Path, state: State, mass: float) -> None:
            if self.vocab not in state:
                paths[(*prefix, (state, ()))] = mass
                return
            for A, share in zip(self.candidates(state), self.law(policy, state)):
                if share > 0:
                    for p, after in self.branches(state, A):
                        walk((*prefix, (state, A)), after, mass * float(share) * p)

        walk((), self.start, 1.0)
        return paths

    def expected_reward(self, policy: Policy) -> float:
        """E[R(X_T)] under a policy."""
        return float(np.sum(self.terminal_law(policy) * self.reward))

    def best_order(self) -> float:
        """The largest E[R(X_T)] any order can reach, by dynamic programming."""
        return self._extreme(max)

    def worst_order(self) -> float:
        """The smallest E[R(X_T)] an order can fall to."""
        return self._extreme(min)

    def _extreme(self, pick: Callable[[Iterable[float]], float]) -> float:
        values: dict[State, float] = {}

        def value(state: State) -> float:
            if self.vocab not in state:
                return float(self.reward[state])
            if state not in values:
                values[state] = pick(
                    sum(p * value(after) for p, after in self.branches(state, A)) for A in self.candidates(state)
                )
            return values[state]

        return value(self.start)

    # The same host for the real decoder -------------------------------------------------------------------------

    def denoiser(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """A callable canvas [B, L] (int64, mask id V) -> logits [B, L, V] (float32): log p, floored at log 1e-30."""
        import torch

        table = torch.from_numpy(np.log(np.maximum(self.conditionals, 1e-30))).float()

        def logits(canvas: torch.Tensor) -> torch.Tensor:
            return table.to(canvas.device)[tuple(canvas.unbind(-1))]

        return logits

    def reward_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """R(x) of complete sequences [B, L], as float32 [B]."""
        import torch

        return torch.from_numpy(self.reward).float().to(tokens.device)[tuple(tokens.unbind(-1))]
