"""Late stage: a residual family of orders that confidence almost never visits.

O = R ∪ rest. Confidence is q0 ∝ ψ with q0(R) = e^{−bh}; values are R* = 1 on R and 0 elsewhere, the best
case; g* = log ψ + βR*. One update multiplies the residual KL by 1−γ when its order falls in R. The gap then is

    Δ = log ψ_R − log ψ_rest + β = β − bh + log(|rest|/|R|)   (up to log(1 − e^{−bh})),

so a constant residual mass needs β ≥ bh + c: the tilt must grow with the difficulty.
"""

from dataclasses import dataclass

import numpy as np

from dprm.theory.laws import soft_bon_law
from dprm.theory.statement import Outcome, at_least, at_most, statement
from dprm.theory.tracking import DELTA, radius

B, C, GAMMA, TARGET = 1.0, 1.0, 0.2, 1e-3
PROMISED = float(1 / (1 + np.exp(-C)))
"""The residual mass under the gap condition with c = C."""


def gibbs_mass(scores: np.ndarray, members: np.ndarray) -> float:
    """π̂(R) of the law ∝ exp(ĝ)."""
    weights = np.exp(scores - scores.max())
    return float(weights[members].sum() / weights.sum())


def mass_bound(gap: float, epsilon: float, residual: int, rest: int) -> float:
    """|R|e^{Δ−2ε} / (|R|e^{Δ−2ε} + |O∖R|)."""
    return 1.0 / (1.0 + rest / residual * float(np.exp(-(gap - 2 * epsilon))))


@statement(
    claim="π̂(R) / bound, smallest over random scores and errors; the adversarial error attains 1",
    condition="orders drawn ∝ exp(ĝ) from the full family, no shortlist. The paper's term b·h is not needed for it",
    unnamed="orders ∝ exp(g), full family",
)
def residual_mass(seed: int, quick: bool) -> Outcome:
    """With Δ − 2ε = log(|rest|/|R|) + c and no b·h term the mass is already 1/(1+e^{−c}) (side condition)."""
    rng = np.random.default_rng(seed)
    smallest, adversary, constant = np.inf, np.inf, True
    for _ in range(500 if quick else 5_000):
        residual, rest = int(rng.integers(1, 6)), int(rng.integers(1, 12))
        members = np.arange(residual + rest) < residual
        gap, epsilon = rng.uniform(0.1, 6.0), rng.uniform(0, 1)
        scores = np.where(members, gap + rng.exponential(size=len(members)), -rng.exponential(size=len(members)))
        true_gap = float(scores[members].min() - scores[~members].max())
        noisy = scores + rng.uniform(-epsilon, epsilon, len(scores))
        smallest = min(smallest, gibbs_mass(noisy, members) / mass_bound(true_gap, epsilon, residual, rest))
        flat = np.where(members, gap - epsilon, epsilon)
        adversary = min(adversary, gibbs_mass(flat, members) / mass_bound(gap, epsilon, residual, rest))
        c = rng.uniform(0.1, 3.0)
        enough = mass_bound(float(np.log(rest / residual)) + c + 2 * epsilon, epsilon, residual, rest)
        constant &= abs(enough - 1 / (1 + np.exp(-c))) < 1e-12
    return at_least(min(smallest, adversary), 1.0 - 1e-12, f"adversary {adversary:.6f}", constant)


def family(h: float, residual: int = 2, rest: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """(log ψ, members of R) with q0(R) = e^{−bh}."""
    share = np.exp(-B * h)
    members = np.arange(residual + rest) < residual
    return np.log(np.where(members, share / residual, (1 - share) / rest)), members


def updates_needed(mass: float) -> float:
    """The number of updates to E K ≤ ε when E K_k = (1 − γp)^k, an equality."""
    return float(np.ceil(np.log(1 / TARGET) / -np.log1p(-GAMMA * mass)))


def dprm_mass(h: float, beta: float, epsilon: float) -> float:
    """π̂(R) with values 1 and 0 and the worst score error of size ε."""
    log_psi, members = family(h)
    return gibbs_mass(log_psi + beta * members + np.where(members, -epsilon, epsilon), members)


@statement(
    claim="growth rate of log T_conf in h, with T_DPRM at most log(1/ε)/(γ p_DPRM) for every h",
    condition="contraction an equality and no help from outside R; β ≥ 2bh + c + 2ε for the paper's gap (bh suffices)",
    unnamed="equality; beta grows with h",
)
def separation(seed: int, quick: bool) -> Outcome:
    """Score error ε = .5, β at the paper's condition; E K checked against simulated updates."""
    rng = np.random.default_rng(seed)
    levels, epsilon = range(1, 9), 0.5
    conf = np.array([updates_needed(np.exp(-B * h)) for h in levels])
    dprm = np.array([updates_needed(dprm_mass(h, 2 * B * h + C + 2 * epsilon, epsilon)) for h in levels])
    slope = float(np.polyfit(levels[2:], np.log(conf[2:]), 1)[0])
    hits = rng.binomial(200, np.exp(-B * 3), size=20_000)
    simulated, predicted = float(np.mean((1 - GAMMA) ** hits)), float((1 - GAMMA * np.exp(-B * 3)) ** 200)
    ceiling = np.ceil(np.log(1 / TARGET) / (GAMMA * PROMISED))
    # At the smaller condition β = bh + c + 2ε the mass is still a constant; log(1−e^{−bh}) is the slack of h = 1.
    lean = min(dprm_mass(h, B * h + C + 2 * epsilon, epsilon) for h in levels)
    note = f"T_conf {conf[0]:.0f} to {conf[-1]:.0f}, T_DPRM {dprm.min():.0f} to {dprm.max():.0f} for h = 1 to 8"
    sound = bool(dprm.max() <= ceiling) and lean >= PROMISED and abs(simulated / predicted - 1) < 0.05
    return at_least(slope, 0.95 * B, f"{note}; smallest mass at β = bh+c+2ε: {lean:.3f}", sound)


@statement(
    claim="counter-example: largest possible residual mass at β = 4 and h = 8, exact scores and best values",
    condition="β ≥ bh + c: g* − log ψ = βR* is at most β, so a fixed tilt cannot lift an exponentially rare family",
    unnamed="shows: beta grows with h",
)
def beta(seed: int, quick: bool) -> Outcome:
    """R* = 1 on R and 0 elsewhere, no error: nothing can do better at this β."""
    masses = {h: dprm_mass(h, 4.0, 0.0) for h in (1, 2, 4, 6, 8)}
    return at_most(masses[8], 0.1, "; ".join(f"h={h}: {mass:.3f}" for h, mass in masses.items()))


@statement(
    claim="counter-example: residual mass of Soft-BoN with N = 64 at h = 8, exact values and the paper's β = 2bh + c",
    condition="the full candidate set: a shortlist drawn from confidence contains R with probability at most N e^{−bh}",
    unnamed="shows: no shortlist from q0",
)
def shortlist(seed: int, quick: bool) -> Outcome:
    """Two groups suffice, as values are constant on each; the score error is 0, so 1/(1+e^{−c}) is promised."""
    masses = {}
    for h in (2, 4, 8):
        share = float(np.exp(-B * h))
        law = soft_bon_law(np.array([share, 1 - share]), np.array([np.exp(2 * B * h + C), 1.0]), 64)
        masses[h] = float(law[0])
    limit = 64 * float(np.exp(-B * 8))
    note = f"promised {PROMISED:.3f}; " + "; ".join(f"h={h}: {mass:.3f}" for h, mass in masses.items())
    return at_most(masses[8], limit, note, limit < PROMISED)


@statement(
    claim="counter-example: T_conf at h = 8 / T_conf at h = 1 when orders outside R also reduce the residual KL",
    condition="no progress from outside R; the assumption (≤) allows it, and then the Ω fails",
    unnamed="shows: equality is needed",
)
def shared_parameters(seed: int, quick: bool) -> Outcome:
    """Outside R the residual KL shrinks by γ/2, which satisfies 'at most K'. The Ω promises growth by e^{7b}."""
    near, far = (updates_needed(p + (1 - p) / 2) for p in (np.exp(-B), np.exp(-8 * B)))
    return at_most(far / near, 2.0, f"T_conf {near:.0f} and {far:.0f}; e^7 = {np.exp(7):.0f}")


@statement(
    claim="counter-example: events N the tracking radius asks for / T_conf, at h = 8 and the paper's β = 2bh + c",
    condition="values known beforehand: β of the gap condition makes the radius, 3(e^β−1)log(3/δ)/N, exponential in h",
    unnamed="shows: N grows like e^beta",
)
def value_cost(seed: int, quick: bool) -> Outcome:
    """β·rad < Δ/2 with v̂ = 0, μ̲ = 1 and one bucket, the cheapest case; a sharper estimator might need fewer."""
    costs = {h: [events_needed(h, k * B * h + C) / updates_needed(np.exp(-B * h)) for k in (2, 1)] for h in (2, 4, 8)}
    note = "; ".join(f"h={h}: {paper:.2g} (β = bh+c: {lean:.2g})" for h, (paper, lean) in costs.items())
    return at_least(costs[8][0], 1.0, note)


def events_needed(h: float, beta: float) -> float:
    """The smallest N with 3(e^β − 1) log(3/δ)/N = Δ/2."""
    log_psi, members = family(h)
    gap = float((log_psi + beta)[members].min() - log_psi[~members].max())
    return float(6 * np.expm1(beta) * np.log(3 / DELTA) / gap)


# The warm-up has at most two to the power of this many events.
DOUBLINGS = 50


@dataclass(frozen=True)
class Fitted:
    """A table of the two families, fitted from orders that q0 drew.

    Attributes:
        events: how many were drawn until the bound was below Δ/2: T_warm. bound: ε. gap: the true Δ.
        error: largest |ĝ − g*|. mass: residual mass of the law ∝ exp(ĝ).
    """

    events: int
    bound: float
    gap: float
    error: float
    mass: float


# Rewards are one of two values with equal chance: of orders in R, and of the others.
REWARDS = {True: (0.9, 1.0), False: (0.0, 0.1)}


def fitted(h: float, beta: float, rng: np.random.Generator) -> Fitted:
    """Double the warm-up until the tracking bound ε = max |log μ̂ − log μ| is below Δ/2.

    ε = rad / max(1, μ̂ − rad) of the worse cell, as both μ and μ̂ are at least μ̂ − rad; a union over both cells and all
    doublings. There is no abstraction error, values being constant inside a family; the gate is open, nothing drifts.
    """
    log_psi, members = family(h)
    moments = {side: np.exp(beta * np.array(values)) for side, values in REWARDS.items()}
    exact = log_psi + np.where(members, np.log(moments[True].mean()), np.log(moments[False].mean()))
    gap = float(exact[members].min() - exact[~members].max())
    log_term = float(np.log(3 * 2 * DOUBLINGS / DELTA))
    events, bound, means = 1, np.inf, dict.fromkeys(REWARDS, 1.0)
    while bound >= gap / 2 and events < 2**DOUBLINGS:
        events *= 2
        inside = int(rng.binomial(events, np.exp(-B * h)))
        bound = 0.0
        for side, count in ((True, inside), (False, events - inside)):
            low, high = moments[side]
            share = rng.binomial(count, 0.5) / max(count, 1)
            means[side] = mean = float(low + share * (high - low))
            rad = float(radius(share * (1 - share) * (high - low) ** 2, max(count, 1), beta, log_term))
            bound = max(bound, rad / max(1.0, mean - rad))
    scores = log_psi + np.where(members, np.log(means[True]), np.log(means[False]))
    error = float(np.abs(scores - exact).max())
    return Fitted(events, bound, gap, error, gibbs_mass(scores, members))


def updates_made(mass: float, rng: np.random.Generator, runs: int = 200) -> float:
    """Updates until the mean residual KL of simulated runs is at most TARGET; each update helps with chance `mass`."""
    most = int(4 * updates_needed(mass)) + 8
    progress, done = np.zeros(runs), 0
    # In blocks: what decides is only how many of a run's updates fell in R.
    block = max(1, most // 400)
    while np.mean((1 - GAMMA) ** progress) > TARGET and done < most:
        progress += rng.binomial(block, mass, runs)
        done += block
    return float(done)


@statement(
    claim="growth rate in h of T_conf/T_DPRM, both measured, where DPRM acts on a table fitted until ε < Δ/2",
    condition="that of late/separation. ε < Δ/2 alone gives the mass |R|/|O|, not 1/(1+e^{−c}); both are constant",
    unnamed="late/separation; warm-up e^{bh}",
)
def practical(seed: int, quick: bool) -> Outcome:
    """Fit, check ε < Δ/2 and |ĝ − g*| ≤ ε, simulate both. The note adds T_warm: what the saving is paid with."""
    rng = np.random.default_rng(seed)
    levels = range(2, 7 if quick else 9)
    conf, dprm, warm, sound = [], [], [], True
    for h in levels:
        table = fitted(h, (B * h + C + 1) / (REWARDS[True][0] - REWARDS[False][1]), rng)
        sound &= table.error <= table.bound < table.gap / 2 and table.mass >= mass_bound(0.0, 0.0, 2, 30)
        conf.append(updates_made(float(np.exp(-B * h)), rng))
        dprm.append(updates_made(table.mass, rng))
        warm.append(table.events)
    slope = float(np.polyfit(list(levels), np.log(np.array(conf) / np.array(dprm)), 1)[0])
    note = f"h = {levels[0]} to {levels[-1]}: T_conf {conf[0]:.0f} to {conf[-1]:.0f}, T_DPRM {min(dprm):.0f} to "
    note += f"{max(dprm):.0f}, T_warm {warm[0]:,} to {warm[-1]:,} events"
    return at_least(slope, 0.9 * B, note, bool(sound))
