"""From bucket values to decisions: uniform score error, top-m regret, recovery under a margin.

    g*(i;s) = log ψ_i + βR*(i;s),   ĝ(i;s) = log ψ_i + β η_i R̂_i
    |ĝ_i − g*_i| ≤ β [ ε_abs + η_i rad_i + (1 − η_i) |R*_i| ] + D/μ̲            (per candidate)

The paper replaces η_i by η(s) = max_i η_i in both places. That is safe in η·rad and wrong in (1 − η)·|R*|: a state with
one ready and one unready cell has η(s) = 1 and the bound forgets the unready one. The fallback term needs the
smallest gate. In η·rad the two must belong to the same candidate, or one empty cell (rad = ∞, η = 0) makes it vacuous.
"""

import numpy as np

from dprm.theory.bucket import BucketTable, Cell, sample_path
from dprm.theory.chain import Chain, Policy, State
from dprm.theory.examples import random_chain
from dprm.theory.statement import Outcome, at_least, at_most, statement
from dprm.theory.tracking import DELTA, radius


def score_ratio(chain: Chain, trajectories: int, rng: np.random.Generator) -> float:
    """max over reachable (s, i) of |ĝ − g*| / bound, with a table learned from q0 trajectories.

    Phases = L, so a trajectory credits a cell at most once and events are independent. ε_abs = max |R* − R̄| is exact:
    the table with infinite q0 data gives R̄.
    """
    beta = chain.beta
    population, learned = (BucketTable(beta, phases=chain.length, bins=4, ready=64) for _ in range(2))
    population.fit(chain, chain.q0)
    moments: dict[Cell, list[float]] = {}
    for _ in range(trajectories):
        events, terminal = sample_path(chain, chain.q0, rng)
        moment = float(np.exp(beta * chain.reward[terminal]))
        for state, (i,) in events:
            cell = learned.cell(chain, state, i)
            learned.add(cell, moment)
            moments.setdefault(cell, []).append(moment)
    log_term = np.log(3 * chain.length * 4 * chain.length**2 / DELTA)
    values = [
        (float(R), learned.cell(chain, state, i))
        for state in chain.reachable(chain.q0)
        for R, (i,) in zip(chain.R_star(state), chain.candidates(state))
    ]
    abstraction = max(abs(R - population.value(cell)) for R, cell in values)
    worst = 0.0
    for R, cell in values:
        gate = learned.gate(cell)
        bound = abstraction + (1 - gate) * abs(R)
        if cell in moments:
            bound += gate * float(radius(np.array(moments[cell]).var(), learned.count[cell], beta, log_term)) / beta
        worst = max(worst, abs(gate * learned.value(cell) - R) / (bound + 1e-15))
    return worst


@statement(
    claim="share of runs with |ĝ − g*| ≤ bound at every reachable (s, i), table learned from 100 trajectories, δ = .1",
    condition="(1 − η)|R*| at each candidate's own gate; the paper uses the largest gate of the state",
    unnamed="smallest gate in (1 - eta)|R*|",
)
def uniform(seed: int, quick: bool) -> Outcome:
    """Random greedy hosts, four confidence bins, N_ready = 64, so that cells are at every stage of readiness."""
    rng = np.random.default_rng(seed)
    runs = 20 if quick else 100
    ratios = [score_ratio(random_chain(seed + k, length=4, beta=(1.0, 4.0)[k % 2]), 100, rng) for k in range(runs)]
    return at_least(float(np.mean(np.array(ratios) <= 1.0)), 1 - DELTA, f"largest error/bound {max(ratios):.2f}")


@statement(
    claim="counter-example: score error / the paper's ε_t with η(s) = max_i η_i, one ready and one unready cell",
    condition="smallest gate in the fallback term",
    unnamed="shows: max gate is not enough",
)
def largest_gate(seed: int, quick: bool) -> Outcome:
    """Two cells with constant reward 1 (no variance, no drift, no aliasing): N = N_ready = 10^6 and N = 10^4; β = 1."""
    beta, counts, value = 1.0, np.array([1e6, 1e4]), 1.0
    gate = np.minimum(counts / 1e6, 1.0)
    error = float(np.max(beta * np.abs(gate * value - value)))
    rad = float(radius(np.zeros(2), counts, beta, np.log(3 * 8 * 16 * 10**2 / DELTA)).max()) / beta
    paper, corrected = (beta * gate.max() * rad + beta * (1 - eta) * value for eta in (gate.max(), gate.min()))
    return at_least(error / paper, 1.0 + 1e-6, f"with the smallest gate {error / corrected:.3f}", error <= corrected)


@statement(
    claim="counter-example: an unvisited candidate is not left in host order; decisions changed by R -> R - 1/2",
    condition="a baseline: π* is invariant to R -> R + c, the gated score is not, as empty cells have value 0",
    unnamed="shows: centre the rewards",
)
def fallback(seed: int, quick: bool) -> Outcome:
    """ψ = (.9 unvisited, .6 visited with mean reward 1/2): the visited one wins, with centred rewards it does not."""
    psi, choices = np.array([0.9, 0.6]), []
    for centre in (0.0, 0.5):
        table = BucketTable(beta=1.0)
        for reward in (0.4, 0.6):
            table.add((0, 9), float(np.exp(reward - centre)))
        bonus = np.array([table.value((0, 14)), table.value((0, 9))])
        choices.append(psi[np.argmax(np.log(psi) + bonus)])
    raw, centred = choices
    return at_least(raw != centred, 1, f"picks .{raw * 10:.0f} without, .{centred * 10:.0f} with centring")


@statement(
    claim="counter-example: R̄ learned under the guided policy differs from R* (continuation q0); max gap, no aliasing",
    condition="events from q0 continuations; on-policy credit has another target, so ε_abs > 0 without aliasing",
    unnamed="shows: eps_abs has a policy part",
)
def on_policy(seed: int, quick: bool) -> Outcome:
    """One cell per (state, position), infinite data: q0 data recover R* exactly, data of the hard rule do not."""
    gap, exact = 0.0, 0.0
    for k in range(12 if quick else 40):
        chain = random_chain(seed + k, beta=2.0)
        base, guided = (BucketTable(2.0, context=lambda chain, s, i: (s, i)) for _ in range(2))
        base.fit(chain, chain.q0)
        guided.fit(chain, chain.hard)
        for state in chain.reachable(chain.hard):
            for R, (i,), share in zip(chain.R_star(state), chain.candidates(state), chain.hard(state)):
                cell = base.cell(chain, state, i)
                exact = max(exact, abs(base.value(cell) - R))
                if share > 0:
                    gap = max(gap, abs(guided.value(cell) - R))
    return at_least(gap, 0.01, f"with q0 data the gap is {exact:.1e}", side_condition=exact < 1e-9)


def regret_ratio(g: np.ndarray, noisy: np.ndarray, m: int) -> float:
    """[J*(A*) − J*(Â)] / (2 m ε), ε = max |ĝ − g*|, with A* and Â the top m of each."""
    epsilon = float(np.abs(noisy - g).max())
    best, chosen = np.argsort(-g, kind="stable")[:m], np.argsort(-noisy, kind="stable")[:m]
    return float(g[best].sum() - g[chosen].sum()) / (2 * m * epsilon)


@statement(
    claim="top-m regret / (2mε), largest over random scores and one adversarial score per m (which reaches 1)",
    condition="the m largest of all candidates are taken; regret is of Σ g*, not of E[R]",
    named="full candidate set",
)
def regret(seed: int, quick: bool) -> Outcome:
    """The adversary lowers the best m by ε and lifts m others by ε: the bound is tight."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(2_000 if quick else 20_000):
        n = int(rng.integers(2, 12))
        g = rng.normal(size=n)
        worst = max(worst, regret_ratio(g, g + rng.uniform(-1, 1, n), int(rng.integers(1, n + 1))))
    adversary = max(regret_ratio(*adversarial_scores(m), m) for m in (1, 2, 4))
    return at_most(max(worst, adversary), 1.0, f"random {worst:.2f}, adversary {adversary:.6f}", adversary > 0.99)


def adversarial_scores(m: int) -> tuple[np.ndarray, np.ndarray]:
    """(g*, ĝ) with ε = 1: ĝ ranks the worse m of 2m candidates first, at almost the largest loss."""
    g = np.array([2 - 1e-6] * m + [0.0] * m)
    return g, g + np.array([-1.0] * m + [1.0] * m)


@statement(
    claim="counter-example: mean regret with exact scores (ε = 0) when only a drawn shortlist of 4 of 8 is ranked",
    condition="the full candidate set; a sampled shortlist has regret of its own that 2mε does not contain",
    unnamed="shows: full set is needed",
)
def regret_shortlist(seed: int, quick: bool) -> Outcome:
    """m = 1; the bound 2mε is 0."""
    rng = np.random.default_rng(seed)
    return at_least(float(np.mean([shortlist_regret(4, rng) for _ in range(500)])), 1e-3)


def shortlist_regret(drawn: int, rng: np.random.Generator) -> float:
    """max g* − max of g* over a Gumbel top-N shortlist ∝ ψ, N = drawn of 8 random candidates."""
    log_psi = np.log(rng.random(8))
    g = log_psi + 2.0 * rng.random(8)
    shortlist = np.argsort(-(log_psi + rng.gumbel(size=8)))[:drawn]
    return float(g.max() - g[shortlist].max())


@statement(
    claim="counter-example: loss of g*(A) = log ψ(A) + βR*(A) when A is the top 2 of exact position scores (ε = 0)",
    condition="m = 1; for m > 1 the value of a set is not the sum of its positions' values, so Σ g* is a surrogate",
    unnamed="shows: for m > 1 value sets",
)
def sets(seed: int, quick: bool) -> Outcome:
    """Position values are R*(i;s) = (1/β) log E_{q0}[exp(βR) | i ∈ A]; 2mε is 0."""
    worst, gains = 0.0, []
    for k in range(12 if quick else 60):
        chain = random_chain(seed + k, m=2, beta=1.0)
        policy = _positionwise(chain)
        for state in chain.reachable(chain.q0):
            exact = chain.log_psi(state) + chain.beta * chain.R_star(state)
            worst = max(worst, float(exact.max() - exact @ policy(state)))
        gains.append(chain.expected_reward(chain.hard) - chain.expected_reward(policy))
    return at_least(worst, 0.01, f"mean E[R] of the set rule minus the position rule {np.mean(gains):+.3f}")


def _positionwise(chain: Chain) -> Policy:
    """argmax over sets of log ψ(A) + β Σ_{i∈A} R*(i;s)."""

    def policy(state: State) -> np.ndarray:
        base, future, sets = chain.q0(state), chain.future(state), chain.candidates(state)
        value = {}
        for i in chain.masked(state):
            inside = np.array([i in A for A in sets])
            value[i] = float(np.log(base[inside] @ future[inside] / base[inside].sum()))
        return chain.argmax(chain.log_psi(state) + np.array([sum(value[i] for i in A) for A in sets]))

    return policy


@statement(
    claim="top-m sets that differ from the exact ones although ε < Δ/2, in random trials",
    condition="margin Δ > 2ε",
    named="margin above 2 eps",
)
def margin(seed: int, quick: bool) -> Outcome:
    """ε is put just below Δ/2 (never a mistake) and at 1.2 Δ/2 (mistakes happen: the condition is needed)."""
    trials = 2_000 if quick else 20_000
    below, above = (mistakes(share, trials, np.random.default_rng(seed)) for share in (0.999, 1.2))
    return at_most(below, 0, f"with ε = 1.2 Δ/2: {above} mistakes", above > 0)


def mistakes(share: float, trials: int, rng: np.random.Generator) -> int:
    """How often the top m change when ε = share · Δ/2 lowers each of them and lifts every other candidate."""
    count = 0
    for _ in range(trials):
        n = int(rng.integers(2, 12))
        m = int(rng.integers(1, n))
        g = rng.normal(size=n)
        order = np.argsort(-g)
        error = np.full(n, share * (g[order[m - 1]] - g[order[m]]) / 2)
        error[order[:m]] *= -1
        count += set(np.argsort(-(g + error))[:m]) != set(order[:m])
    return count
