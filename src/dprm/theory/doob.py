"""The Doob h-transform of the reveal chain: recursion, tilted path law, terminal law, bounded values.

The paper proves these for a deterministic update s -> s^a "under teacher forcing". A decoder has such an update when
its tokens are greedy. With sampled tokens only the order is tilted, not the tokens, and the terminal law is missed;
under teacher forcing itself the terminal sequence is the training sequence and there is nothing to tilt.
"""

from itertools import product
from typing import Any

import numpy as np

from dprm.theory.chain import Chain, Policy, State
from dprm.theory.examples import random_chain, teacher_forced
from dprm.theory.laws import kl, total_variation
from dprm.theory.statement import EXACT, Outcome, at_least, at_most, statement


def _hosts(seed: int, quick: bool, **options: Any) -> list[Chain]:
    """Random hosts with exact and noisy denoisers; greedy tokens unless `options` say otherwise."""
    return [
        random_chain(seed + k, length=4, beta=(0.5, 1.0, 4.0)[k % 3], noise=0.3 * (k % 2), **options)
        for k in range(6 if quick else 30)
    ]


@statement(
    claim="h(s) by backward recursion = E[exp(βR)] summed over all paths from s; max relative error",
    condition="finite horizon; holds for greedy and sampled tokens and any m",
    named="-",
)
def recursion(seed: int, quick: bool) -> Outcome:
    """h_t(s) = Σ_a q0(a|s) h_{t+1}(s^a) against the path sum, which never uses the recursion."""
    worst = 0.0
    for chain in [*_hosts(seed, quick), *_hosts(seed, True, tokens="sampled", m=2)]:
        totals: dict[State, float] = {}
        masses: dict[State, float] = {}
        for path, probability in chain.path_law(chain.q0).items():
            tilt = float(np.exp(chain.beta * chain.reward[path[-1][0]]))
            for state, _ in path:
                masses[state] = masses.get(state, 0.0) + probability
                totals[state] = totals.get(state, 0.0) + probability * tilt
        worst = max(worst, *(abs(chain.h(s) * masses[s] / totals[s] - 1.0) for s in masses))
    return at_most(worst, EXACT)


@statement(
    claim="P_β(A_t = a | S_t = s) of the tilted path law = Gibbs reveal law π*; max total variation",
    condition="deterministic token updates (the paper: teacher forcing); hosts: greedy tokens",
    named="greedy tokens",
)
def one_step(seed: int, quick: bool) -> Outcome:
    """Condition the enumerated tilted path law on (S_t = s) and compare with π*(·|s)."""
    return at_most(max(one_step_gap(chain, chain.pi_star) for chain in _hosts(seed, quick)), EXACT)


def one_step_gap(chain: Chain, policy: Policy) -> float:
    """max over s of TV(one-step conditional of the tilted path law, policy)."""
    joint: dict[State, np.ndarray] = {}
    for path, probability in chain.path_law(chain.q0).items():
        tilted = probability * float(np.exp(chain.beta * chain.reward[path[-1][0]]))
        for state, A in path[:-1]:
            row = joint.setdefault(state, np.zeros(len(chain.candidates(state))))
            row[chain.candidates(state).index(A)] += tilted
    return max(total_variation(row / row.sum(), policy(state)) for state, row in joint.items())


@statement(
    claim="the terminal law of π* = ν_β, the base law tilted by exp(βR); max total variation",
    condition="deterministic token updates: greedy tokens. The paper states the theorem for decoding without it",
    unnamed="greedy tokens",
)
def terminal(seed: int, quick: bool) -> Outcome:
    """TV(law of X_T under π*, ν_β) over random greedy hosts, exact and noisy denoisers, m = 1 and 2."""
    hosts = [*_hosts(seed, quick), *_hosts(seed, True, m=2)]
    return at_most(max(total_variation(chain.terminal_law(chain.pi_star), chain.nu_beta) for chain in hosts), EXACT)


@statement(
    claim="counter-example: with sampled tokens π* misses ν_β; smallest KL(ν_β ‖ π*) over noisy hosts, β = 1 to 8",
    condition="sampled tokens: π* tilts the order only, ν_β would need the token law tilted by h(s^{i,y}) as well",
    unnamed="shows: greedy tokens are needed",
)
def terminal_sampled(seed: int, quick: bool) -> Outcome:
    """Hosts with a noisy denoiser, so that order does matter; the note gives the range of the gap for each β."""
    gaps: dict[float, list[float]] = {1.0: [], 8.0: []}
    for (beta, divergences), k in product(gaps.items(), range(3 if quick else 10)):
        chain = random_chain(seed + k, length=4, noise=0.3, tokens="sampled", beta=beta)
        divergences.append(kl(chain.nu_beta, chain.terminal_law(chain.pi_star)))
    note = "; ".join(f"β={b:g}: KL {min(g):.3f} to {max(g):.3f}" for b, g in gaps.items())
    return at_least(min(map(min, gaps.values())), 1e-3, note)


@statement(
    claim="under teacher forcing the tilt is empty: spread of R*(i; s) over candidates when tokens are those of x",
    condition="the paper names its deterministic update 'teacher forcing'; there X_T = x for every order: use greedy",
    unnamed="shows: use greedy, not forced, tokens",
)
def teacher_forcing(seed: int, quick: bool) -> Outcome:
    """A denoiser that always answers with the clean sequence x: R* is R(x) for every candidate of every state."""
    worst, greedy = 0.0, 0.0
    for host in _hosts(seed, quick):
        likeliest = np.unravel_index(int(host.terminal_law(host.q0).argmax()), host.reward.shape)
        worst = max(worst, _spread(teacher_forced(host, tuple(int(token) for token in likeliest))))
        greedy = max(greedy, _spread(host))
    return at_most(worst, EXACT, f"the same hosts with greedy tokens have spread {greedy:.3f}", greedy > 0.01)


def _spread(chain: Chain) -> float:
    """The largest max_i R*(i;s) − min_i R*(i;s) over reachable states."""
    return max(float(np.ptp(chain.R_star(state))) for state in chain.reachable(chain.q0))


@statement(
    claim="R*(a; s) stays inside the range of R; largest excursion over every reachable state",
    condition="R(X_T) in [0, 1]",
    named="R in [0, 1]",
)
def bounded(seed: int, quick: bool) -> Outcome:
    """max of (R* − 1)^+ and (−R*)^+ with sparse, uniform and likelihood rewards, greedy and sampled tokens."""
    excess = 0.0
    variants = product(("uniform", "sparse", "likelihood"), ("greedy", "sampled"), range(1 if quick else 4))
    for reward, tokens, k in variants:
        chain = random_chain(seed + k, length=4, reward=reward, tokens=tokens, noise=0.2, beta=4.0)
        for state in chain.reachable(chain.random):
            values = chain.R_star(state)
            excess = max(excess, float(values.max()) - 1.0, -float(values.min()))
    return at_most(excess, 1e-12)
