"""An exactly enumerable host and its Doob transform: h, R*, π*, ν_β and the policies of the paper, as exact numbers.

Symbols. s: canvas (tuple of L tokens, V is the mask). A: candidate, a tuple of min(m, masked) positions revealed
together. ψ: base score. s^A: the canvas after the reveal. R: terminal reward. q0(A|s) ∝ ψ(A;s): base proposal.
exp(βR): tilt. A policy is any callable s -> law over `candidates(s)`; every method s -> law is itself a policy:
`chain.expected_reward(chain.pi_star)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from dprm.theory.canvas import Conditionals, check_conditionals, check_joint, check_reward, conditionals_of
from dprm.theory.laws import normalised, soft_bon_law

if TYPE_CHECKING:
    import torch

State = tuple[int, ...]
Candidate = tuple[int, ...]
Policy = Callable[[State], np.ndarray]
Path = tuple[tuple[State, Candidate], ...]


class Chain:
    """A masked-diffusion decoder small enough to enumerate.

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
        self.reward = check_reward(reward, reward_range)
        self.length, self.vocab = self.reward.ndim, self.reward.shape[0]
        self.joint = None if joint is None else check_joint(joint)
        if self.joint is not None and self.joint.shape != self.reward.shape:
            raise ValueError(f"reward has shape {self.reward.shape}, joint has shape {self.joint.shape}")
        if tokens not in ("greedy", "sampled"):
            raise ValueError(f"tokens must be 'greedy' or 'sampled', got {tokens!r}")
        if not 1 <= m <= self.length:
            raise ValueError(f"m must be in 1..L={self.length}, got {m}")
        if not (np.isfinite(beta) and beta > 0):
            raise ValueError(f"beta must be positive and finite, got {beta}")
        if beta * float(np.abs(self.reward).max()) > 500:
            raise ValueError(f"beta={beta} times the largest |reward| overflows exp; use at most 500")
        if conditionals is not None:
            self.conditionals = check_conditionals(conditionals, self.length, self.vocab)
        elif self.joint is not None:
            self.conditionals = conditionals_of(self.joint)
        else:
            raise ValueError("give joint or conditionals: a chain needs a denoiser")
        self.tokens, self.m, self.beta, self.reward_range = tokens, int(m), float(beta), reward_range
        self.start: State = (self.vocab,) * self.length  # the fully masked canvas
        self.steps = -(-self.length // self.m)  # the horizon T = ⌈L/m⌉
        self._custom_psi = psi
        self._confidence_table = self.conditionals.max(-1)
        self._candidates: dict[tuple[int, ...], tuple[Candidate, ...]] = {}

    def replace(self, **changes: Any) -> Chain:
        """The same host with some arguments changed, e.g. `chain.replace(beta=4, tokens="sampled")`."""
        names = ("joint", "reward", "tokens", "m", "beta", "reward_range")
        arguments: dict[str, Any] = {name: getattr(self, name) for name in names}
        arguments["psi"] = self._custom_psi
        # A new joint brings its own conditionals.
        arguments["conditionals"] = None if "joint" in changes else self.conditionals
        return Chain(**(arguments | changes))

    # Reveals ----------------------------------------------------------------------------------------------------

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
        if self.tokens == "greedy":
            choices = [[(int(rows[i].argmax()), 1.0)] for i in candidate]
        else:
            choices = [[(y, float(p)) for y, p in enumerate(rows[i]) if p > 0] for i in candidate]
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
        law, count = np.asarray(policy(state), dtype=np.float64), len(self.candidates(state))
        if law.shape != (count,) or not (law.min() >= 0 and abs(law.sum() - 1.0) <= 1e-9):
            raise ValueError(
                f"policy must return a law over the {count} candidates of canvas {state}: got {law.tolist()}"
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

    def reachable(self, policy: Policy) -> list[State]:
        """The canvases with a masked position that a policy can reach, in the order of decoding."""
        return [state for level in self.occupancy(policy)[:-1] for state in level]

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

    # Backward recursions ----------------------------------------------------------------------------------------

    def backward(self, terminal: np.ndarray, combine: Callable[[State, np.ndarray], float]) -> Callable[[State], float]:
        """s -> v(s) with v = terminal on full canvases and v(s) = combine(s, [E v(s^A) per candidate A]) elsewhere."""
        values: dict[State, float] = {}

        def value(state: State) -> float:
            if self.vocab not in state:
                return float(terminal[state])
            if state not in values:
                values[state] = float(combine(state, self.lookahead(value, state)))
            return values[state]

        return value

    def lookahead(self, value: Callable[[State], float], state: State) -> np.ndarray:
        """E[v(s^A)] per candidate; the expectation is over the host's tokens."""
        return np.array([sum(p * value(after) for p, after in self.branches(state, A)) for A in self.candidates(state)])

    def best_order(self) -> float:
        """The largest E[R(X_T)] any order can reach."""
        return self.backward(self.reward, lambda state, values: values.max())(self.start)

    def worst_order(self) -> float:
        """The smallest E[R(X_T)] an order can fall to."""
        return self.backward(self.reward, lambda state, values: values.min())(self.start)

    def moment(self, policy: Policy) -> Callable[[State], float]:
        """s -> E_policy[exp(βR(X_T)) | S_t = s]."""
        return self.backward(np.exp(self.beta * self.reward), lambda state, future: policy(state) @ future)

    # The Doob transform -----------------------------------------------------------------------------------------

    @cached_property
    def h(self) -> Callable[[State], float]:
        """h(s) = E_{q0}[exp(βR(X_T)) | S_t = s], by h(s) = Σ_A q0(A|s) E[h(s^A)] and h = exp(βR) on full canvases."""
        return self.moment(self.q0)

    def future(self, state: State) -> np.ndarray:
        """exp(βR*(A; s)) = E[h(s^A)] per candidate."""
        return self.lookahead(self.h, state)

    def R_star(self, state: State) -> np.ndarray:
        """The process reward R*(A; s) = (1/β) log E[exp(βR(X_T)) | s, A], per candidate."""
        return np.asarray(np.log(self.future(state)) / self.beta)

    @cached_property
    def nu_beta(self) -> np.ndarray:
        """The target ν_β(x) ∝ P_{q0}(X_T = x) exp(βR(x)), shape (V,)*L."""
        return normalised(self.terminal_law(self.q0) * np.exp(self.beta * (self.reward - self.reward.max())))

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
        return normalised(np.ones(len(self.candidates(state))))

    def soft_bon(self, draws: int) -> Policy:
        """i.i.d. Soft-BoN with N draws: E over shortlists of the law that reweights them by exp(βR*)."""
        return lambda state: soft_bon_law(self.q0(state), self.future(state), draws)

    @staticmethod
    def argmax(score: np.ndarray) -> np.ndarray:
        """One-hot of the first maximum. Scores equal up to rounding count as tied, so that symmetry is not noise."""
        law = np.zeros(len(score))
        law[int(np.flatnonzero(score >= score.max() - 1e-12)[0])] = 1.0
        return law

    # The same host for the real decoder -------------------------------------------------------------------------

    def denoiser(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """A callable canvas [B, L] (int64, mask id V) -> logits [B, L, V] (float32): log p, floored at log 1e-30."""
        import torch

        table = torch.from_numpy(np.log(np.maximum(self.conditionals, 1e-30))).float()
        return lambda canvas: table.to(canvas.device)[tuple(canvas.unbind(-1))]

    def reward_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """R(x) of complete sequences [B, L], as float32 [B]."""
        import torch

        return torch.from_numpy(self.reward).float().to(tokens.device)[tuple(tokens.unbind(-1))]
