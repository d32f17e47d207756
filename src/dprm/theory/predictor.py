"""The Bayes predictor does not depend on the masking law, if that law never looks at the hidden tokens.

o is a clean sequence, z a canvas, P(z|o) a masking law (forward process). Everything is enumerated: the joint over
(o, z) is summed to P(O_i = u, Z = z), posteriors are ratios of these.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from dprm.theory.alignment import clean_sequences
from dprm.theory.chain import Chain, Policy, State
from dprm.theory.examples import null_control, teacher_forced
from dprm.theory.laws import arrays, total_variation
from dprm.theory.statement import EXACT, Outcome, at_least, at_most, statement

MaskingLaw = Callable[[State], dict[State, float]]


@statement(
    claim="weighted cross-entropy is minimised by P(Y|X) where w > 0; distance of the optimum found by descent",
    condition="w is a function of X alone; where w(x) = 0 the minimiser is free",
    named="w a function of X",
)
def cross_entropy(seed: int, quick: bool) -> Outcome:
    """Gradient descent on logits from a random start, several weights; a weight of (X, Y) must move the optimum."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(15)).reshape(5, 3)
    truth = joint / joint.sum(1, keepdims=True)
    weights = np.ones((5, 1)), rng.random((5, 1))
    gap = max(float(np.abs(_minimiser(joint, weight, rng) - truth).max()) for weight in weights)
    shift = float(np.abs(_minimiser(joint, rng.random((5, 3)), rng) - truth).max())
    return at_most(gap, 1e-6, f"a weight that sees Y moves the optimum by {shift:.2f}", shift > 0.01)


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


def canvases(chain: Chain, clean: State) -> list[State]:
    """Every canvas that agrees with a clean sequence."""
    return list(product(*((token, chain.vocab) for token in clean)))


def independent(chain: Chain, clean: State, rate: Callable[[int], float]) -> dict[State, float]:
    """The law of z when every position is hidden independently with the probability `rate` of its token."""
    return {
        canvas: float(np.prod([rate(o) if z == chain.vocab else 1 - rate(o) for z, o in zip(canvas, clean)]))
        for canvas in canvases(chain, clean)
    }


def progressive(chain: Chain, clean: State, policy: Policy) -> dict[State, float]:
    """The law of the canvas at a uniform step of a teacher-forced trajectory."""
    levels = teacher_forced(chain, clean).occupancy(policy)[:-1]
    # With one position per step a canvas belongs to one level.
    return {state: mass / chain.steps for level in levels for state, mass in level.items()}


def masking_laws(chain: Chain) -> dict[str, MaskingLaw]:
    """Forward processes whose P(z|o) = α(z) 1{o agrees with z}."""
    return {
        "random 30 %": lambda clean: independent(chain, clean, lambda token: 0.3),
        "random 80 %": lambda clean: independent(chain, clean, lambda token: 0.8),
        "confidence": lambda clean: progressive(chain, clean, chain.confidence),
        "q0": lambda clean: progressive(chain, clean, chain.q0),
    }


def token_masses(chain: Chain, law: MaskingLaw) -> dict[State, np.ndarray]:
    """P(O_i = u, Z = z) for every visited z, as {z: [L, V]}."""
    masses: dict[State, np.ndarray] = {}
    for clean, probability in clean_sequences(chain):
        for state, mass in law(clean).items():
            rows = masses.setdefault(state, np.zeros((chain.length, chain.vocab)))
            rows[np.arange(chain.length), clean] += mass * probability
    return masses


def predictor_gap(chain: Chain, law: MaskingLaw) -> float:
    """max |P(O_i = u | Z = z) − p(o_i = u | z)| over visited z and all i."""
    masses = token_masses(chain, law)
    posteriors = {state: rows / rows.sum(1, keepdims=True) for state, rows in masses.items()}
    return max(float(np.abs(posterior - chain.conditionals[state]).max()) for state, posterior in posteriors.items())


@statement(
    claim="the Bayes predictor is the same under four masking laws; largest error of any posterior",
    condition="P(z|o) = α(z)·1{agree} with equality, so that α sums to 1 over the canvases of every o",
    unnamed="P(z|o) = alpha(z) exactly",
)
def bayes(seed: int, quick: bool) -> Outcome:
    """Also the corollary: progressive masking changes the occupancy of canvases (side condition), not the minimiser."""
    worst, shift = 0.0, 1.0
    for k in range(1 if quick else 4):
        chain = null_control(seed + k)
        laws = masking_laws(chain)
        worst = max(worst, *(predictor_gap(chain, law) for law in laws.values()))
        random, confidence = (
            {state: float(rows[0].sum()) for state, rows in token_masses(chain, laws[name]).items()}
            for name in ("random 30 %", "confidence")
        )
        shift = min(shift, total_variation(*arrays(random, confidence)))
    return at_most(worst, EXACT, f"occupancies of random and confidence masks differ by TV {shift:.2f}", shift > 0.1)


@statement(
    claim="gradient of the progressive masked risk at the Bayes denoiser (tabular logits); largest entry",
    condition="as predictor/bayes; the risk is convex in the logits, so a zero gradient is a minimum",
    unnamed="P(z|o) = alpha(z) exactly",
)
def minimizer(seed: int, quick: bool) -> Outcome:
    """∂L/∂logit[z,i,u] = w(z) Σ_o p(o)P(z|o) (p_θ(u|z,i) − 1{o_i = u}), w = 1/number masked."""
    worst, chain = 0.0, null_control(seed)
    for law in masking_laws(chain).values():
        for state, rows in token_masses(chain, law).items():
            gradient = rows.sum(1, keepdims=True) * chain.conditionals[state] - rows
            worst = max(worst, float(np.abs(gradient).max()) / max(1, len(chain.masked(state))))
    return at_most(worst, EXACT)


@statement(
    claim="counter-example: distance of the minimisers under random and confidence masks, for a model too small",
    condition="the model class contains the Bayes denoiser; otherwise the occupancy of canvases decides its minimiser",
    unnamed="shows: a rich enough model",
)
def misspecified(seed: int, quick: bool) -> Outcome:
    """The model p_θ(u | i) ignores the canvas: its minimiser is the mean of O_i over the canvases that hide i."""
    chain, optima = null_control(seed), {}
    for name, law in masking_laws(chain).items():
        hidden = np.zeros((chain.length, chain.vocab))
        for state, rows in token_masses(chain, law).items():
            positions = list(chain.masked(state))
            hidden[positions] += rows[positions]
        optima[name] = hidden / hidden.sum(1, keepdims=True)
    reference = optima.pop("random 30 %")
    gap = {name: float(np.abs(optimum - reference).max()) for name, optimum in optima.items()}
    note = "; ".join(f"{name}: {value:.3f}" for name, value in gap.items())
    return at_least(gap["confidence"], 1e-3, note, side_condition=gap["random 80 %"] < EXACT)


@statement(
    claim="counter-example: error of the predictor when the masking law depends on the hidden token",
    condition="α(z) does not depend on o",
    named="shows: alpha must not see o",
)
def bayes_peeking(seed: int, quick: bool) -> Outcome:
    """Each position is hidden with probability .8 if its token is 0 and .2 otherwise."""
    chain = null_control(seed)
    gap = predictor_gap(chain, lambda clean: independent(chain, clean, lambda token: 0.8 if token == 0 else 0.2))
    return at_least(gap, 0.01)


@statement(
    claim="counter-example: error of the predictor when P(z|o) is only proportional to α(z)·1{agree}",
    condition="equality: the paper writes ∝, and a normaliser C(o) that varies with o does not cancel in Bayes' rule",
    unnamed="shows: = is needed, not ∝",
)
def bayes_normaliser(seed: int, quick: bool) -> Outcome:
    """α(z) = 3^(number of visible zeros), normalised for each o: α never sees o, its normaliser does."""
    chain = null_control(seed)

    def law(clean: State) -> dict[State, float]:
        weights = {canvas: 3.0 ** canvas.count(0) for canvas in canvases(chain, clean)}
        total = sum(weights.values())
        return {canvas: weight / total for canvas, weight in weights.items()}

    return at_least(predictor_gap(chain, law), 0.01)
