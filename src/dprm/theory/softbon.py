"""Soft-BoN: how close a shortlist of N i.i.d. draws comes to the Gibbs reveal law.

What can be proved. Write w = exp(βR*), μ = E_q w. By Jensen E π̂(a) ≥ N q(a)w(a) / (w(a) + (N−1)μ), hence

    KL(π* ‖ E π̂) ≤ E_{π*} log(1 + (w−μ)/(Nμ)) ≤ Var_q(w) / (N μ²) ≤ sinh²(β/2) / N,

the last step because w ∈ [1, e^β]. The paper writes E KL(π* ‖ π̂) instead, with π̂ conditioned on the shortlist. That
number is infinite as soon as a candidate can be missed, since π̂ then has a zero where π* has mass.
"""

from itertools import product

import numpy as np

from dprm.theory.chain import Chain, Policy, State
from dprm.theory.examples import random_chain
from dprm.theory.laws import arrays, kl, miss_probability, normalised, soft_bon_law, total_variation
from dprm.theory.statement import Outcome, at_least, at_most, statement


@statement(
    claim="KL(π* ‖ E π̂_N) / (sinh²(β/2)/N), worst of random states, β in .5..8, N in 1..64",
    condition="the law of the output, E π̂, not the paper's E of KL; i.i.d. draws, exact R* in [0, 1]",
    unnamed="KL of the mean law, i.i.d. draws",
)
def local(seed: int, quick: bool) -> Outcome:
    """Exact laws; the note gives the largest ratio per N: the true rate is near 1/N², so the bound is loose by ~N."""
    rng = np.random.default_rng(seed)
    worst, sharpest = dict.fromkeys((1, 2, 4, 16, 64), 0.0), 0.0
    for k in range(30 if quick else 300):
        n = int(rng.integers(2, 9))
        q, value = rng.dirichlet(np.ones(n)), rng.random(n) if k % 2 else rng.integers(0, 2, n).astype(float)
        for beta, draws in product((0.5, 1.0, 2.0, 4.0, 8.0), worst):
            weight = np.exp(beta * value)
            mean = float(q @ weight)
            divergence = draws * max(0.0, kl(q * weight / mean, soft_bon_law(q, weight, draws)))
            variance = float(q @ (weight - mean) ** 2) / mean**2
            worst[draws] = max(worst[draws], divergence / float(np.sinh(beta / 2) ** 2))
            sharpest = max(sharpest, divergence / variance if variance > 1e-12 else 0.0)
    note = "; ".join(f"N={n}: {r:.2g}" for n, r in worst.items())
    return at_most(max(worst.values()), 1.0, f"{note}; against Var/(Nμ²): {sharpest:.2g}", sharpest <= 1.0)


@statement(
    claim="counter-example: share of shortlists with infinite KL(π* ‖ π̂), 8 candidates, N = 64, so that E KL = ∞",
    condition="the paper's expectation is finite only if no candidate can be missed, which N draws never guarantee",
    unnamed="shows: E of KL is infinite",
)
def missed(seed: int, quick: bool) -> Outcome:
    """Draw shortlists, evaluate the paper's KL on each: finite when all candidates appear, infinite otherwise."""
    rng = np.random.default_rng(seed)
    q, value, draws = rng.dirichlet(np.full(8, 3.0)), rng.random(8), 64
    weight, trials = np.exp(value), 2_000 if quick else 20_000
    shortlists = rng.multinomial(draws, q, size=trials)
    divergences = [kl(normalised(q * weight), normalised(counts * weight)) for counts in shortlists]
    share, probability = float(np.mean(np.isinf(divergences))), miss_probability(q, draws)
    consistent = abs(share - probability) < 5 * np.sqrt(0.25 / trials)
    return at_least(share, 1 / trials, f"exact P(a candidate is missed) {probability:.4f}", bool(consistent))


@statement(
    claim="counter-example: shortlist without replacement, then argmax, is not Soft-BoN; TV to π*, N = 8 of 8",
    condition="the theorem's law: i.i.d. draws, then sampling ∝ exp(βR*). Argmax of a shortlist converges elsewhere",
    unnamed="shows: sample, do not argmax",
)
def hard_shortlist(seed: int, quick: bool) -> Outcome:
    """With N = n the shortlist is everything and argmax is a point mass; Soft-BoN with the same N is near π*."""
    rng = np.random.default_rng(seed)
    q, value, beta = rng.dirichlet(np.ones(8)), rng.random(8), 1.0
    weight = np.exp(beta * value)
    laws = Chain.argmax(np.log(q) + beta * value), soft_bon_law(q, weight, 8)
    hard_gap, soft_gap = (total_variation(law, normalised(q * weight)) for law in laws)
    return at_least(hard_gap, 10 * soft_gap, f"Soft-BoN N=8 has TV {soft_gap:.4f}; KL(π* ‖ argmax) is infinite")


@statement(
    claim="KL(ν_β ‖ law of X_T with N draws per step) / (T sinh²(β/2)/N), worst host and N",
    condition="greedy tokens, fresh i.i.d. shortlist at every state, the law of the output (not E of KL)",
    unnamed="greedy tokens, KL of the mean law",
)
def terminal(seed: int, quick: bool) -> Outcome:
    """Exact terminal laws on random greedy hosts with L = T = 4."""
    worst = 0.0
    for k, beta in product(range(2 if quick else 8), (1.0, 4.0)):
        chain = random_chain(seed + k, length=4, concentration=0.3, beta=beta)
        for draws in (1, 2, 8, 64):
            bound = chain.steps * float(np.sinh(beta / 2)) ** 2 / draws
            worst = max(worst, kl(chain.nu_beta, chain.terminal_law(chain.soft_bon(draws))) / bound)
    return at_most(worst, 1.0)


@statement(
    claim="KL of reveal trajectories = E Σ_t KL of the one-step laws, and is at least the terminal KL; max error",
    condition="same initial state and same token kernel in both chains; deterministic or sampled",
    named="same token kernel",
)
def chain_rule(seed: int, quick: bool) -> Outcome:
    """π* against Soft-BoN with 2 draws: the left side from all paths, the right side from the occupancy of canvases."""
    error, data_processing = 0.0, True
    for k in range(2 if quick else 6):
        chain = random_chain(seed + k, length=4, noise=0.3, tokens=("greedy", "sampled")[k % 2], beta=2.0)
        soft_bon = chain.soft_bon(2)
        path_kl = kl(*arrays(chain.path_law(chain.pi_star), chain.path_law(soft_bon)))
        levels = chain.occupancy(chain.pi_star)[:-1]
        steps_kl = sum(p * kl(chain.pi_star(s), soft_bon(s)) for level in levels for s, p in level.items())
        error = max(error, abs(path_kl - steps_kl))
        terminal_kl = kl(chain.terminal_law(chain.pi_star), chain.terminal_law(soft_bon))
        data_processing &= terminal_kl <= path_kl + 1e-12
    return at_most(error, 1e-10, side_condition=data_processing)


def shortlist_size(state: State) -> int:
    """N_t(s), 1 to 16: a function of what is visible and nothing else."""
    mixed = sum((token + 1) * 7**place for place, token in enumerate(state))
    return 1 + int(mixed) % 16


@statement(
    claim="KL(P_β ‖ law of trajectories with N_t(s) draws) / (sinh²(β/2) E_{P_β} Σ_t 1/N_t(S_t)), worst host",
    condition="greedy tokens, N_t a function of the visible state, fresh i.i.d. draws, KL of the mean law",
    unnamed="greedy tokens, KL of the mean law",
)
def by_state(seed: int, quick: bool) -> Outcome:
    """Exact path laws; the note compares with T sinh²(β/2)/min N, all that a constant N could promise."""
    worst, looser, sizes = 0.0, np.inf, set()
    for k, beta in product(range(2 if quick else 8), (1.0, 4.0)):
        chain = random_chain(seed + k, length=4, concentration=0.3, beta=beta)
        occupied = {state: mass for level in chain.occupancy(chain.pi_star)[:-1] for state, mass in level.items()}
        inverse = sum(mass / shortlist_size(state) for state, mass in occupied.items())
        laws = chain.path_law(chain.pi_star), chain.path_law(_by_state(chain))
        worst = max(worst, kl(*arrays(*laws)) / (float(np.sinh(beta / 2)) ** 2 * inverse))
        sizes |= (here := {shortlist_size(state) for state in occupied})
        looser = min(looser, chain.steps / min(here) / inverse)
    note = f"N from {min(sizes)} to {max(sizes)}; the smallest N everywhere would promise {looser:.1f} times as much"
    return at_most(worst, 1.0, note, len(sizes) > 1)


def _by_state(chain: Chain) -> Policy:
    """Soft-BoN with as many draws as the state says."""
    return lambda state: chain.soft_bon(shortlist_size(state))(state)
