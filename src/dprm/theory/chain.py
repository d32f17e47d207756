"""The Doob transform of an enumerable host: h, R*, π*, ν_β and the policies of the paper, as exact numbers.

q0(A|s) ∝ ψ(A;s) is the base proposal, exp(βR) the tilt. Laws over candidates are arrays aligned with
`chain.candidates(s)`, and every method s -> law is itself a policy: `chain.expected_reward(chain.pi_star)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from dprm.theory.canvas import Conditionals
from dprm.theory.host import Candidate, Host, Path, Policy, State
from dprm.theory.laws import normalised
from dprm.theory.shortlist import soft_bon_law

__all__ = ["Candidate", "Chain", "Path", "Policy", "State"]


class Chain(Host):
    """A masked-diffusion host small enough to enumerate.

    Args:
        joint: p(x), shape (V,)*L; its exact conditionals are the denoiser. Or None with `conditionals`.
        reward: R(x), shape (V,)*L, inside `reward_range`.
        conditionals: table (V+1,)*L + (L, V), or callable canvas -> [L, V]; replaces the conditionals of `joint`, and
            need not be consistent with any joint (a noisy or tempered denoiser).
        tokens: "greedy" (argmax; ties to the smallest token) or "sampled".
        m: positions revealed in parallel per step, from conditionals of the same canvas.
        beta: inverse temperature β > 0 of the tilt exp(βR).
        psi: callable canvas -> [L], positive at masked positions. Default: confidence max_y p(y | s, i).
        reward_range: declared range of R; the paper's is [0, 1].
    """

    def __init__(
        self,
        joint: np.ndarray | None = None,
        reward: np.ndarray | None = None,
        *,
        conditionals: Conditionals | None = None,
        tokens: str = "greedy",
        m: int = 1,
        beta: float = 1.0,
        psi: Callable[[State], np.ndarray] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(joint, reward, conditionals, tokens, m, psi, reward_range)
        if not (np.isfinite(beta) and beta > 0):
            raise ValueError(f"beta must be positive and finite, got {beta}")
        if beta * float(np.abs(self.reward).max()) > 500:
            raise ValueError(f"beta={beta} times the largest |reward| overflows exp; use at most 500")
        self.beta = float(beta)
        self._h: dict[State, float] = {}
        self._future: dict[State, np.ndarray] = {}

    def replace(self, **changes: Any) -> Chain:
        """The same host with some arguments changed, e.g. `chain.replace(beta=4, tokens="sampled")`."""
        kept: dict[str, Any] = {
            "joint": self.joint,
            "reward": self.reward,
            "conditionals": self.conditionals,
            "tokens": self.tokens,
            "m": self.m,
            "beta": self.beta,
            "psi": self._custom_psi,
            "reward_range": self.reward_range,
        }
        if "joint" in changes:  # a new joint brings its own conditionals
            kept["conditionals"] = None
        return Chain(**(kept | changes))

    # The Doob transform -----------------------------------------------------------------------------------------

    def h(self, state: State) -> float:
        """h(s) = E_{q0}[exp(βR(X_T)) | S_t = s], by h(s) = Σ_A q0(A|s) E[h(s^A)] and h = exp(βR) on full canvases."""
        if state not in self._h:
            if self.vocab not in state:
                self._h[state] = float(np.exp(self.beta * self.reward[state]))
            else:
                self._h[state] = float(self.q0(state) @ self.future(state))
        return self._h[state]

    def future(self, state: State) -> np.ndarray:
        """exp(βR*(A; s)) = E[h(s^A)] per candidate; the expectation is over the host's tokens."""
        if state not in self._future:
            self._future[state] = np.array(
                [sum(p * self.h(after) for p, after in self.branches(state, A)) for A in self.candidates(state)]
            )
        return self._future[state]

    def R_star(self, state: State) -> np.ndarray:
        """The process reward R*(A; s) = (1/β) log E[exp(βR(X_T)) | s, A], per candidate."""
        return np.asarray(np.log(self.future(state)) / self.beta)

    @cached_property
    def nu_beta(self) -> np.ndarray:
        """The target ν_β(x) ∝ P_{q0}(X_T = x) exp(βR(x)), shape (V,)*L."""
        return normalised(self.terminal_law(self.q0) * np.exp(self.beta * (self.reward - self.reward.max())))

    def soft_bon_bound(self, draws: int) -> float:
        """T sinh²(β(R_max − R_min)/2) / N, the bound on KL(ν_β ‖ terminal law of `soft_bon(N)`) for greedy tokens."""
        low, high = self.reward_range
        return self.steps * float(np.sinh(self.beta * (high - low) / 2)) ** 2 / draws

    # Policies ---------------------------------------------------------------------------------------------------

    def q0(self, state: State) -> np.ndarray:
        """The base proposal q0(A|s) = ψ(A;s) / Σ ψ."""
        logs = self.log_psi(state)
        return normalised(np.exp(logs - logs.max()))

    def pi_star(self, state: State) -> np.ndarray:
        """The Gibbs reveal law π*(A|s) ∝ q0(A|s) exp(βR*(A;s))."""
        return normalised(self.q0(state) * self.future(state))

    def confidence(self, state: State) -> np.ndarray:
        """The host's own order: all mass on argmax ψ (ties to the first candidate)."""
        return self.argmax(self.log_psi(state))

    def hard(self, state: State) -> np.ndarray:
        """The hard exact-value rule: all mass on argmax of g*(A;s) = log ψ(A;s) + βR*(A;s)."""
        return self.argmax(self.log_psi(state) + self.beta * self.R_star(state))

    def random(self, state: State) -> np.ndarray:
        """Uniform over candidates."""
        n = len(self.candidates(state))
        return np.full(n, 1.0 / n)

    def soft_bon(self, draws: int) -> Policy:
        """i.i.d. Soft-BoN with N draws: E over shortlists of the law that reweights them by exp(βR*)."""
        return lambda state: soft_bon_law(self.q0(state), self.future(state), draws)

    @staticmethod
    def argmax(score: np.ndarray) -> np.ndarray:
        """One-hot of the first maximum. Scores equal up to rounding count as tied, so that symmetry is not noise."""
        law = np.zeros(len(score))
        law[int(np.flatnonzero(score >= score.max() - 1e-12)[0])] = 1.0
        return law
