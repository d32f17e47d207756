"""Soft-BoN: how close a shortlist of N i.i.d. draws comes to the Gibbs reveal law.

What can be proved. Write w = exp(βR*), μ = E_q w. By Jensen E π̂(a) ≥ N q(a)w(a) / (w(a) + (N−1)μ), hence

    KL(π* ‖ E π̂) ≤ E_{π*} log(1 + (w−μ)/(Nμ)) ≤ Var_q(w) / (N μ²) ≤ sinh²(β/2) / N,

the last step because w ∈ [1, e^β]. The paper writes E KL(π* ‖ π̂) instead, with π̂ conditioned on the shortlist. That
number is infinite as soon as a candidate can be missed, since π̂ then has a zero where π* has mass.
"""

import numpy as np

from dprm.theory.chain import Chain, Path, Policy, State
from dprm.theory.examples import random_chain
from dprm.theory.laws import kl, kl_of_dicts
from dprm.theory.shortlist import miss_probability, soft_bon_law
from dprm.theory.statement import Outcome, at_least, at_most, statement

BETAS = (0.5, 1.0, 2.0, 4.0, 8.0)
DRAWS = (1, 2, 4, 16, 64)


def local_ratios(q: np.ndarray, value: np.ndarray, beta: float, draws: int) -> tuple[float, float]:
    """KL(π* ‖ E π̂_N) divided by sinh²(β/2)/N and by Var_q(w)/(Nμ²), for one state with values R* ∈ [0, 1]."""
    weight = np.exp(beta * value)
    mean = float(q @ weight)
    divergence = max(0.0, kl(q * weight / mean, soft_bon_law(q, weight, draws)))
    variance = float(q @ (weight - mean) ** 2) / mean**2
    sharp = draws * divergence / variance if variance > 1e-12 else 0.0
    return draws * divergence / float(np.sinh(beta / 2) ** 2), sharp


@statement(
    "softbon/local",
    claim="KL(π* ‖ E π̂_N) / (sinh²(β/2)/N), worst of random states, β in .5..8, N in 1..64",
    condition="the law of the output, E π̂, not the paper's E of KL; i.i.d. draws, exact R* in [0, 1]",
    needs="KL of the mean law, i.i.d. draws",
    named=False,
)
def local(seed: int, quick: bool) -> Outcome:
    """Exact laws; the note gives the largest ratio per N: the true rate is near 1/N², so the bound is loose by ~N."""
    rng = np.random.default_rng(seed)
    worst, sharpest = dict.fromkeys(DRAWS, 0.0), 0.0
    for k in range(30 if quick else 300):
        n = int(rng.integers(2, 9))
        q, value = rng.dirichlet(np.ones(n)), rng.random(n) if k % 2 else rng.integers(0, 2, n).astype(float)
        for beta in BETAS:
            for draws in DRAWS:
                ratio, sharp = local_ratios(q, value, beta, draws)
                worst[draws], sharpest = max(worst[draws], ratio), max(sharpest, sharp)
    note = "; ".join(f"N={n}: {r:.2g}" for n, r in worst.items())
    return at_most(max(worst.values()), 1.0, f"{note}; against Var/(Nμ²): {sharpest:.2g}", also=sharpest <= 1.0)


@statement(
    "softbon/missed",
    claim="counter-example: share of shortlists with infinite KL(π* ‖ π̂), 8 candidates, N = 64, so that E KL = ∞",
    condition="the paper's expectation is finite only if no candidate can be missed, which N draws never guarantee",
    needs="shows: E of KL is infinite",
    named=False,
)
def missed(seed: int, quick: bool) -> Outcome:
    """Draw shortlists, evaluate the paper's KL on each: finite when all candidates appear, infinite otherwise."""
    rng = np.random.default_rng(seed)
    q, value, draws = rng.dirichlet(np.full(8, 3.0)), rng.random(8), 64
    weight = np.exp(value)
    target = q * weight / (q @ weight)
    trials = 2_000 if quick else 20_000
    infinite = 0
    for counts in rng.multinomial(draws, q, size=trials):
        infinite += not np.isfinite(kl(target, counts * weight / (counts @ weight)))
    probability = miss_probability(q, draws)
    consistent = abs(infinite / trials - probability) < 5 * np.sqrt(0.25 / trials)
    note = f"exact P(a candidate is missed) {probability:.4f}"
    return at_least(infinite / trials, 1 / trials, note, also=bool(consistent))


@statement(
    "softbon/hard-shortlist",
    claim="counter-example: shortlist without replacement, then argmax, is not Soft-BoN; TV to π*, N = 8 of 8",
    condition="the theorem's law: i.i.d. draws, then sampling ∝ exp(βR*). Argmax of a shortlist converges elsewhere",
    needs="shows: sample, do not argmax",
    named=False,
)
def hard_shortlist(seed: int, quick: bool) -> Outcome:
    """With N = n the shortlist is everything and argmax is a point mass; Soft-BoN with the same N is near π*."""
    rng = np.random.default_rng(seed)
    q, value, beta = rng.dirichlet(np.ones(8)), rng.random(8), 1.0
    weight = np.exp(beta * value)
    target = q * weight / (q @ weight)
    hard = Chain.argmax(np.log(q) + beta * value)
    soft = soft_bon_law(q, weight, 8)
    gap, soft_gap = (0.5 * np.abs(law - target).sum() for law in (hard, soft))
    return at_least(gap, 10 * soft_gap, f"Soft-BoN N=8 has TV {soft_gap:.4f}; KL(π* ‖ argmax) is infinite")


@statement(
    "softbon/terminal",
    claim="KL(ν_β ‖ law of X_T with N draws per step) / (T sinh²(β/2)/N), worst host and N",
    condition="greedy tokens, fresh i.i.d. shortlist at every state, the law of the output (not E of KL)",
    needs="greedy tokens, KL of the mean law",
    named=False,
)
def terminal(seed: int, quick: bool) -> Outcome:
    """Exact terminal laws on random greedy hosts with L = T = 4."""
    worst = 0.0
    for k in range(2 if quick else 8):
        for beta in (1.0, 4.0):
            chain = random_chain(seed + k, length=4, concentration=0.3, beta=beta)
            for draws in (1, 2, 8, 64):
                divergence = kl(chain.nu_beta, chain.terminal_law(chain.soft_bon(draws)))
                worst = max(worst, divergence / chain.soft_bon_bound(draws))
    return at_most(worst, 1.0)


@statement(
    "softbon/chain-rule",
    claim="KL of reveal trajectories = E Σ_t KL of the one-step laws, and is at least the terminal KL; max error",
    condition="same initial state and same token kernel in both chains; deterministic or sampled",
    needs="same token kernel",
    named=True,
)
def chain_rule(seed: int, quick: bool) -> Outcome:
    """Both sides by full enumeration of paths, π* against Soft-BoN with 2 draws."""
    error, data_processing = 0.0, True
    for k in range(2 if quick else 6):
        chain = random_chain(seed + k, length=4, noise=0.3, tokens=("greedy", "sampled")[k % 2], beta=2.0)
        other = chain.soft_bon(2)
        exact, approximate = chain.path_law(chain.pi_star), chain.path_law(other)
        whole = kl_of_dicts(exact, approximate)
        memo: dict[State, float] = {}
        parts = 0.0
        for path, probability in exact.items():
            parts += probability * sum(_step_kl(chain, path, t, other, memo) for t in range(len(path) - 1))
        error = max(error, abs(whole - parts))
        terminal_kl = kl(chain.terminal_law(chain.pi_star), chain.terminal_law(other))
        data_processing &= terminal_kl <= whole + 1e-12
    return at_most(error, 1e-10, also=data_processing)


def _step_kl(chain: Chain, path: Path, t: int, other: Policy, memo: dict[State, float]) -> float:
    state = path[t][0]
    if state not in memo:
        memo[state] = kl(chain.pi_star(state), other(state))
    return memo[state]
