"""Early stage: sampling orders in proportion to gradient scale, against sampling them at random.

    M(p) = Σ_o u(o)² ν(o)² / p(o),   p_opt ∝ u ν,   M(p_opt) = (Σ u ν)²

The family on which SGD is exact. K(θ) = ½θ², orders o = 1..2^d, u uniform; order o has stochastic gradient
(c_o/u_o)(θ + σξ), ξ = ±1, with Σ c_o = 1: E holds 1−ρ of that mass in one order. Then for any proposal p, with
V_p = Σ c_o²/p_o = M(p)/(θ² + σ²),

    E K(θ_{k+1}) = (1 − 2η + η²V_p) E K(θ_k) + η²V_pσ²/2,

an equality, so that both the O and the Ω of the theorem can be measured.
"""

import numpy as np

from dprm.theory.laws import normalised
from dprm.theory.statement import Outcome, at_least, at_most, statement


def moment_ratio(u: np.ndarray, nu: np.ndarray, p: np.ndarray) -> float:
    """M(p) / M(p_opt)."""
    moment, optimum = (float(np.sum(u**2 * nu**2 / proposal)) for proposal in (p, normalised(u * nu)))
    return moment / optimum


@statement(
    claim="M(p)/M(p_opt), smallest over random proposals and over a numerical minimisation that ignores the formula",
    condition="ν(o) > 0 where u(o) > 0",
    named="-",
)
def variance_optimal(seed: int, quick: bool) -> Outcome:
    """Exponentiated gradient on the simplex must come down to 1 and not below."""
    rng = np.random.default_rng(seed)
    smallest, minimum = np.inf, 0.0
    for _ in range(20 if quick else 200):
        u, nu = rng.dirichlet(np.ones(6)), rng.lognormal(size=6)
        p = np.full(6, 1 / 6)
        for _ in range(400):
            pull = u**2 * nu**2 / p**2
            p = normalised(p * (pull / pull.max()) ** 0.1)
        minimum = max(minimum, moment_ratio(u, nu, p))
        proposals = [p, *rng.dirichlet(np.ones(6), size=50)]
        smallest = min(smallest, *(moment_ratio(u, nu, proposal) for proposal in proposals))
    return at_least(smallest, 1.0 - 1e-9, f"the minimisation ends at {minimum:.6f}", minimum < 1 + 1e-4)


@statement(
    claim="M(p_conf) / (κ² M(p_opt)), largest over random u, ν and proxies within a factor κ",
    condition="κ⁻¹ν ≤ c ≤ κν. The sharp constant is ((κ + 1/κ)/2)² (Kantorovich)",
    named="confidence within kappa of ν",
)
def confidence_moment(seed: int, quick: bool) -> Outcome:
    """Random proxies, and the half–half proxy that attains the sharp constant."""
    rng = np.random.default_rng(seed)
    worst, sharp = 0.0, 0.0
    for kappa in (1.1, 2.0, 5.0):
        ratio = moment_ratio(np.ones(6), np.ones(6), normalised(kappa ** np.repeat([-1.0, 1.0], 3)))
        for _ in range(200 if quick else 2_000):
            u, nu = rng.dirichlet(np.ones(6)), rng.lognormal(size=6)
            ratio = max(ratio, moment_ratio(u, nu, normalised(u * nu * kappa ** rng.uniform(-1, 1, 6))))
        worst, sharp = max(worst, ratio / kappa**2), max(sharp, ratio / ((kappa + 1 / kappa) / 2) ** 2)
    return at_most(worst, 1.0, f"against the sharp constant {sharp:.6f}", sharp <= 1 + 1e-12)


@statement(
    claim="M(p_rand) / ((1−ρ)² e^{ad} M(p_opt)), smallest over random families of 2 to 256 orders",
    condition="a share 1−ρ of the gradient mass on a family smaller by e^{ad}",
    named="importance concentration",
)
def random_moment(seed: int, quick: bool) -> Outcome:
    """E is the heaviest few orders; ρ and e^{ad} = |O|/|E| are then what they are."""
    rng = np.random.default_rng(seed)
    smallest = np.inf
    for _ in range(200 if quick else 5_000):
        n = 2 ** int(rng.integers(1, 9))
        easy = int(rng.integers(1, n + 1))
        u, nu = rng.dirichlet(np.ones(n)), rng.lognormal(sigma=2.0, size=n)
        mass = np.sort(u * nu)[::-1]
        share = mass[:easy].sum() / mass.sum()
        smallest = min(smallest, moment_ratio(u, nu, np.full(n, 1 / n)) / (share**2 * n / easy))
    return at_least(smallest, 1.0 - 1e-12)


@statement(
    claim="counter-example: rank correlation of confidence and gradient norm at calibrated softmax positions",
    condition="confidence must grow with gradient norm; for cross-entropy of a calibrated softmax it falls",
    unnamed="shows: kappa may be large",
)
def softmax_proxy(seed: int, quick: bool) -> Outcome:
    """κ is the best constant after rescaling c."""
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.dirichlet(np.full(4, a), size=200) for a in (0.1, 1.0, 10.0)])
    p = 0.999 * p + 0.001 / 4
    confidence, nu = p.max(1), gradient_norm(p)
    ranks = [np.argsort(np.argsort(x)).astype(float) for x in (confidence, nu)]
    ratio = confidence / nu
    kappa = float(np.sqrt(ratio.max() / ratio.min()))
    return at_most(float(np.corrcoef(ranks)[0, 1]), 0.0, f"smallest possible κ {kappa:.1f}")


def gradient_norm(p: np.ndarray) -> np.ndarray:
    """ν of cross-entropy at calibrated softmax rows p [n, V]: ν² = E_y ‖e_y − p‖² = 1 − Σp² for y ~ p."""
    return np.asarray(np.sqrt(1 - (p**2).sum(1)))


def updates_needed(V: float, epsilon: float, sigma: float = 1.0) -> float:
    """The fewest updates from E K = 1 to E K ≤ ε over every constant stepsize, by the exact recursion."""
    largest = 4 * epsilon / (V * (sigma**2 + 2 * epsilon))
    steps = largest * np.linspace(0.005, 0.995, 2_000)
    floor = steps * V * sigma**2 / 2 / (2 - steps * V)
    rate = 1 - 2 * steps + steps**2 * V
    reaches = (floor < epsilon) & (rate < 1) & (rate > 0)
    counts = np.log((epsilon - floor[reaches]) / (1 - floor[reaches])) / np.log(rate[reaches])
    return float(np.ceil(counts.min()))


def exact_family(d: int, rho: float, kappa: float, rng: np.random.Generator) -> tuple[float, float]:
    """V of the confidence and of the random proposal on the family of 2^d orders."""
    n = 2**d
    mass = np.full(n, rho / max(n - 1, 1))
    mass[0] = 1 - rho
    confident = normalised(mass * kappa ** rng.uniform(-1, 1, n))
    return float(np.sum(mass**2 / confident)), float(np.sum(mass**2) * n)


def simulated_error(V: float, step: float, updates: int, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """Mean ½θ² after SGD that draws E with probability 1/V, and the recursion's prediction (ρ = 0, σ = 1, θ_0 = √2)."""
    theta, predicted = np.full(runs, np.sqrt(2.0)), 1.0
    for _ in range(updates):
        drawn = rng.random(runs) < 1 / V
        theta -= step * V * drawn * (theta + rng.choice([-1.0, 1.0], runs))
        predicted = (1 - 2 * step + step**2 * V) * predicted + step**2 * V / 2
    return float(np.mean(theta**2) / 2), predicted


@statement(
    claim="(T_rand/T_conf) / ((1−ρ)² e^{ad}/κ²), smallest over d; best constant stepsize for each",
    condition="the recursion is an equality and gradient noise does not vanish; the paper has an upper bound only",
    unnamed="equality; noise at the optimum",
)
def separation(seed: int, quick: bool) -> Outcome:
    """ρ = .1, κ = 1.5, ε = .01; the slope of log T_rand against d must be a = log 2, that of T_conf 0."""
    rng = np.random.default_rng(seed)
    rho, kappa, epsilon = 0.1, 1.5, 0.01
    dims = np.arange(2, 11 if quick else 16)
    V = np.array([exact_family(int(d), rho, kappa, rng) for d in dims])
    conf, rand = (np.array([updates_needed(v, epsilon) for v in column]) for column in V.T)
    slopes = [float(np.polyfit(dims, np.log(T), 1)[0]) for T in (conf, rand)]
    ratio = float(np.min(rand / conf / ((1 - rho) ** 2 * 2.0**dims / kappa**2)))
    simulated, predicted = simulated_error(8.0, 0.02, 100, 4_000 if quick else 40_000, rng)
    note = (
        f"T_conf {conf[0]:.0f} to {conf[-1]:.0f}, T_rand {rand[0]:.0f} to {rand[-1]:.0f}; slopes {slopes[0]:.3f}, "
        f"{slopes[1]:.3f} (log 2 = 0.693); simulated E K {simulated:.3f}, recursion {predicted:.3f}"
    )
    sound = abs(simulated / predicted - 1) < 0.15 and abs(slopes[1] - np.log(2)) < 0.05 and abs(slopes[0]) < 0.05
    return at_least(ratio, 1.0 - 0.02, note, sound)


@statement(
    claim="counter-example: T_rand ε / log(1/ε) at ε = 1e-8 relative to ε = 1e-2 when gradients vanish at the optimum",
    condition="noise at the optimum: the paper's Ω takes the floor of an upper bound for the floor of SGD",
    unnamed="shows: noise floor is needed",
)
def interpolation(seed: int, quick: bool) -> Outcome:
    """σ = 0: T_rand is V log(1/ε), so the promised factor 1/ε is absent (the factor e^{ad} remains)."""
    V = exact_family(8, 0.1, 1.0, np.random.default_rng(seed))[1]
    coarse, fine = (updates_needed(V, epsilon, sigma=0.0) for epsilon in (1e-2, 1e-8))
    ratio = (fine * 1e-8 / np.log(1e8)) / (coarse * 1e-2 / np.log(1e2))
    return at_most(ratio, 1e-2, f"T_rand {coarse:.0f} and {fine:.0f} at d=8")
