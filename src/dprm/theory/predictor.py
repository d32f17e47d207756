"""The Bayes predictor does not depend on the masking law, if that law never looks at the hidden tokens.

o is a clean sequence, z a canvas, P(z|o) a masking law (forward process). Everything is enumerated: the joint over
(o, z) is a list of weighted pairs, posteriors are ratios of its sums.
"""

from collections.abc import Callable, Iterator

import numpy as np

from dprm.theory.alignment import blind, clean_sequences, forced_law, posterior_host
from dprm.theory.chain import Chain, Policy, State
from dprm.theory.laws import arrays, total_variation
from dprm.theory.statement import EXACT, Outcome, at_least, at_most, statement

MaskingLaw = Callable[[State], dict[State, float]]


@statement(
    claim="weighted cross-entropy is minimised by P(Y|X) where w > 0; distance of the optimum found by descent",
    condition="w is a function of X alone; where w(x) = 0 the minimiser is free",
    needs="w a function of X",
    named=True,
)
def cross_entropy(seed: int, quick: bool) -> Outcome:
    """Gradient descent on logits from a random start, several weights; a weight of (X, Y) must move the optimum."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(15)).reshape(5, 3)
    truth = joint / joint.sum(1, keepdims=True)
    errors = [np.abs(_minimiser(joint, w[:, None] * np.ones(3), rng) - truth).max() for w in (np.ones(5), rng.random(5))]
    shift = float(np.abs(_minimiser(joint, rng.random((5, 3)), rng) - truth).max())
    return at_most(max(errors), 1e-6, f"a weight that sees Y moves the optimum by {shift:.2f}", shift > 0.01)


def _minimiser(joint: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """argmin_r Σ joint·weight·(−log r), r = softmax of a table of logits, by preconditioned gradient descent."""
    mass = joint * weight
    logits = rng.normal(size=joint.shape)
    for _ in range(300):
        r = np.exp(logits - logits.max(1, keepdims=True))
        r /= r.sum(1, keepdims=True)
        # The diagonal of the Hessian is about M·r; without it rare tokens converge too slowly to see the optimum.
        logits -= np.clip(0.5 * (r - mass / mass.sum(1, keepdims=True)) / r, -1.0, 1.0)
    return np.asarray(r)


def maskings(chain: Chain, clean: State) -> list[tuple[tuple[int, ...], State]]:
    """Every mask (1 = hidden) with the canvas it makes of a clean sequence."""
    masks = np.ndindex(*(2,) * chain.length)
    return [(mask, tuple(chain.vocab if hide else token for hide, token in zip(mask, clean))) for mask in masks]


def independent(chain: Chain, rate: Callable[[int], float]) -> MaskingLaw:
    """Hide every position independently with the probability `rate` of its token."""

    def law(clean: State) -> dict[State, float]:
        rates = [rate(token) for token in clean]
        return {
            canvas: float(np.prod([r if hide else 1 - r for hide, r in zip(mask, rates)]))
            for mask, canvas in maskings(chain, clean)
        }

    return law


def progressive(chain: Chain, policy: Policy) -> MaskingLaw:
    """The canvas at a uniform step of a teacher-forced trajectory."""

    def law(clean: State) -> dict[State, float]:
        result: dict[State, float] = {}
        for level in forced_law(chain, clean, blind(policy))[:-1]:
            for state, mass in level.items():
                result[state] = result.get(state, 0.0) + mass / chain.steps
        return result

    return law


def masking_laws(chain: Chain) -> dict[str, MaskingLaw]:
    """Forward processes whose P(z|o) = α(z) 1{o agrees with z}."""
    return {
        "random 30 %": independent(chain, lambda token: 0.3),
        "random 80 %": independent(chain, lambda token: 0.8),
        "confidence": progressive(chain, chain.confidence),
        "q0": progressive(chain, chain.q0),
    }


def clean_and_masked(chain: Chain, law: MaskingLaw) -> Iterator[tuple[State, State, float]]:
    """The triples (o, z, p(o) P(z|o))."""
    for clean, probability in clean_sequences(chain):
        for state, mass in law(clean).items():
            yield clean, state, mass * probability


def predictor_gap(chain: Chain, law: MaskingLaw) -> tuple[float, dict[State, float]]:
    """max |P(O_i = u | Z = z) − p(o_i = u | z)| over visited z and masked i, and the occupancy of z."""
    counts: dict[State, np.ndarray] = {}
    for clean, state, mass in clean_and_masked(chain, law):
        rows = counts.setdefault(state, np.zeros((chain.length, chain.vocab)))
        rows[np.arange(chain.length), clean] += mass
    worst = 0.0
    for state, rows in counts.items():
        for i in chain.masked(state):
            if rows[i].sum() > 0:
                worst = max(worst, float(np.abs(rows[i] / rows[i].sum() - chain.conditionals[state][i]).max()))
    return worst, {state: float(rows[0].sum()) for state, rows in counts.items()}


@statement(
    claim="the Bayes predictor is the same under four masking laws; largest error of any posterior",
    condition="P(z|o) = α(z)·1{agree} with equality, so that α sums to 1 over the canvases of every o",
    needs="P(z|o) = alpha(z) exactly",
)
def bayes(seed: int, quick: bool) -> Outcome:
    """Also the corollary: progressive masking changes the occupancy of canvases (side condition), not the minimiser."""
    worst, shift = 0.0, 1.0
    for k in range(1 if quick else 4):
        chain = posterior_host(seed + k)
        gaps, occupancies = zip(*(predictor_gap(chain, law) for law in masking_laws(chain).values()))
        worst = max(worst, *gaps)
        shift = min(shift, total_variation(*arrays(occupancies[0], occupancies[2])))
    return at_most(worst, EXACT, f"occupancies of random and confidence masks differ by TV {shift:.2f}", shift > 0.1)


@statement(
    claim="gradient of the progressive masked risk at the Bayes denoiser (tabular logits); largest entry",
    condition="as predictor/bayes; the risk is convex in the logits, so a zero gradient is a minimum",
    needs="P(z|o) = alpha(z) exactly",
)
def minimizer(seed: int, quick: bool) -> Outcome:
    """∂L/∂logit[z,i,u] = Σ_o p(o)P(z|o) w(z) (p_θ(u|z,i) − 1{o_i = u}), w = 1/number masked."""
    worst = 0.0
    chain = posterior_host(seed)
    for law in masking_laws(chain).values():
        gradient: dict[State, np.ndarray] = {}
        for clean, state, mass in clean_and_masked(chain, law):
            gradient.setdefault(state, np.zeros((chain.length, chain.vocab)))
            weight = mass / max(1, len(chain.masked(state)))
            gradient[state] += weight * (chain.conditionals[state] - np.eye(chain.vocab)[list(clean)])
        worst = max(worst, *(float(np.abs(g).max()) for g in gradient.values()))
    return at_most(worst, EXACT)


@statement(
    claim="counter-example: distance of the minimisers under random and confidence masks, for a model too small",
    condition="the model class contains the Bayes denoiser; otherwise the occupancy of canvases decides its minimiser",
    needs="shows: a rich enough model",
)
def misspecified(seed: int, quick: bool) -> Outcome:
    """The model p_θ(u | i) ignores the canvas: its minimiser is the mean of O_i over the canvases that hide i."""
    chain = posterior_host(seed)
    optima = {}
    for name, law in masking_laws(chain).items():
        counts = np.zeros((chain.length, chain.vocab))
        for clean, state, mass in clean_and_masked(chain, law):
            for i in chain.masked(state):
                counts[i, clean[i]] += mass
        optima[name] = counts / counts.sum(1, keepdims=True)
    reference = optima.pop("random 30 %")
    gap = {name: float(np.abs(optimum - reference).max()) for name, optimum in optima.items()}
    note = "; ".join(f"{name}: {value:.3f}" for name, value in gap.items())
    return at_least(gap["confidence"], 1e-3, note, side_condition=gap["random 80 %"] < EXACT)


@statement(
    claim="counter-example: error of the predictor when the masking law depends on the hidden token",
    condition="α(z) does not depend on o",
    needs="shows: alpha must not see o",
    named=True,
)
def bayes_peeking(seed: int, quick: bool) -> Outcome:
    """Each position is hidden with probability .8 if its token is 0 and .2 otherwise."""
    chain = posterior_host(seed)
    law = independent(chain, lambda token: 0.8 if token == 0 else 0.2)
    return at_least(predictor_gap(chain, law)[0], 0.01)


@statement(
    claim="counter-example: error of the predictor when P(z|o) is only proportional to α(z)·1{agree}",
    condition="equality: the paper writes ∝, and a normaliser C(o) that varies with o does not cancel in Bayes' rule",
    needs="shows: = is needed, not ∝",
)
def bayes_normaliser(seed: int, quick: bool) -> Outcome:
    """α(z) = 3^(number of visible zeros), normalised for each o: α never sees o, its normaliser does."""
    chain = posterior_host(seed)

    def law(clean: State) -> dict[State, float]:
        weights = {canvas: 3.0 ** canvas.count(0) for _, canvas in maskings(chain, clean)}
        total = sum(weights.values())
        return {canvas: weight / total for canvas, weight in weights.items()}

    return at_least(predictor_gap(chain, law)[0], 0.01)
