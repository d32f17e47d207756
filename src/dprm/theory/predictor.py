"""The Bayes predictor does not depend on the masking law, if that law never looks at the hidden tokens.

o is a clean sequence, z a canvas, P(z|o) a masking law (forward process). Everything is enumerated: the joint over
(o, z) is a dictionary, posteriors are ratios of its sums.
"""

from collections.abc import Callable

import numpy as np

from dprm.theory.alignment import EXACT, blind, forced_law, posterior_host
from dprm.theory.chain import Chain, Policy, State
from dprm.theory.laws import total_variation
from dprm.theory.statement import Outcome, at_least, at_most, statement

MaskingLaw = Callable[[State], dict[State, float]]


@statement(
    "predictor/cross-entropy",
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
    found = [np.abs(_minimiser(joint, w[:, None] * np.ones(3), rng) - truth).max() for w in (np.ones(5), rng.random(5))]
    moved = float(np.abs(_minimiser(joint, rng.random((5, 3)), rng) - truth).max())
    return at_most(max(found), 1e-6, f"a weight that sees Y moves the optimum by {moved:.2f}", also=moved > 0.01)


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


def _masking_laws(chain: Chain) -> dict[str, MaskingLaw]:
    """Forward processes whose P(z|o) = α(z) 1{o agrees with z}."""

    def bernoulli(rate: float) -> MaskingLaw:
        return lambda clean: {
            tuple(chain.vocab if hide else token for hide, token in zip(mask, clean)): float(
                np.prod([rate if hide else 1 - rate for hide in mask])
            )
            for mask in np.ndindex(*(2,) * chain.length)
        }

    def progressive(policy: Policy) -> MaskingLaw:
        def law(clean: State) -> dict[State, float]:
            result: dict[State, float] = {}
            for level in forced_law(chain, clean, blind(policy))[:-1]:
                for state, mass in level.items():
                    result[state] = result.get(state, 0.0) + mass / chain.steps
            return result

        return law

    return {
        "random 30 %": bernoulli(0.3),
        "random 80 %": bernoulli(0.8),
        "confidence": progressive(chain.confidence),
        "q0": progressive(chain.q0),
    }


def predictor_gap(chain: Chain, law: MaskingLaw) -> tuple[float, dict[State, float]]:
    """max |P(O_i = u | Z = z) − p(o_i = u | z)| over visited z and masked i, and the occupancy of z."""
    assert chain.joint is not None
    counts: dict[State, np.ndarray] = {}
    for clean in np.ndindex(*chain.joint.shape):
        for state, mass in law(clean).items():
            rows = counts.setdefault(state, np.zeros((chain.length, chain.vocab)))
            rows[np.arange(chain.length), clean] += mass * chain.joint[clean]
    worst = 0.0
    for state, rows in counts.items():
        for i in chain.masked(state):
            if rows[i].sum() > 0:
                worst = max(worst, float(np.abs(rows[i] / rows[i].sum() - chain.conditionals[state][i]).max()))
    return worst, {state: float(rows[0].sum()) for state, rows in counts.items()}


@statement(
    "predictor/bayes",
    claim="the Bayes predictor is the same under four masking laws; largest error of any posterior",
    condition="P(z|o) = α(z)·1{agree} with equality, so that α sums to 1 over the canvases of every o",
    needs="P(z|o) = alpha(z) exactly",
    named=False,
)
def bayes(seed: int, quick: bool) -> Outcome:
    """Also the corollary: progressive masking changes the occupancy of canvases (side condition), not the minimiser."""
    worst, shift = 0.0, 1.0
    for k in range(1 if quick else 4):
        chain = posterior_host(seed + k)
        results = [predictor_gap(chain, law) for law in _masking_laws(chain).values()]
        worst = max(worst, *(gap for gap, _ in results))
        keys = list(results[0][1].keys() | results[2][1].keys())
        random, progressive = (np.array([results[j][1].get(z, 0.0) for z in keys]) for j in (0, 2))
        shift = min(shift, total_variation(random, progressive))
    return at_most(worst, EXACT, f"occupancies of random and confidence masks differ by TV {shift:.2f}", shift > 0.1)


@statement(
    "predictor/minimizer",
    claim="gradient of the progressive masked risk at the Bayes denoiser (tabular logits); largest entry",
    condition="as predictor/bayes; the risk is convex in the logits, so a zero gradient is a minimum",
    needs="P(z|o) = alpha(z) exactly",
    named=False,
)
def minimizer(seed: int, quick: bool) -> Outcome:
    """∂L/∂logit[z,i,u] = Σ_o p(o)P(z|o) w(z) (p_θ(u|z,i) − 1{o_i = u}), w = 1/number masked."""
    worst = 0.0
    chain = posterior_host(seed)
    assert chain.joint is not None
    for law in _masking_laws(chain).values():
        gradient: dict[State, np.ndarray] = {}
        for clean in np.ndindex(*chain.joint.shape):
            onehot = np.eye(chain.vocab)[list(clean)]
            for state, mass in law(clean).items():
                weight = mass * chain.joint[clean] / max(1, len(chain.masked(state)))
                gradient.setdefault(state, np.zeros_like(onehot))
                gradient[state] += weight * (chain.conditionals[state] - onehot)
        worst = max(worst, *(float(np.abs(g).max()) for g in gradient.values()))
    return at_most(worst, EXACT)


@statement(
    "predictor/misspecified",
    claim="counter-example: distance of the minimisers under random and confidence masks, for a model too small",
    condition="the model class contains the Bayes denoiser; otherwise the occupancy of canvases decides its minimiser",
    needs="shows: a rich enough model",
    named=False,
)
def misspecified(seed: int, quick: bool) -> Outcome:
    """The model p_θ(u | i) ignores the canvas: its minimiser is the mean of O_i over the canvases that hide i."""
    chain = posterior_host(seed)
    assert chain.joint is not None
    laws, optima = _masking_laws(chain), {}
    for name, law in laws.items():
        counts = np.zeros((chain.length, chain.vocab))
        for clean in np.ndindex(*chain.joint.shape):
            for state, mass in law(clean).items():
                for i in chain.masked(state):
                    counts[i, clean[i]] += mass * chain.joint[clean]
        optima[name] = counts / counts.sum(1, keepdims=True)
    gap = {name: float(np.abs(optima[name] - optima["random 30 %"]).max()) for name in laws}
    note = "; ".join(f"{name}: {value:.3f}" for name, value in gap.items() if name != "random 30 %")
    return at_least(gap["confidence"], 1e-3, note, also=gap["random 80 %"] < EXACT)


@statement(
    "predictor/bayes-peeking",
    claim="counter-example: error of the predictor when the masking law depends on the hidden token",
    condition="α(z) does not depend on o",
    needs="shows: alpha must not see o",
    named=True,
)
def bayes_peeking(seed: int, quick: bool) -> Outcome:
    """Each position is hidden with probability .8 if its token is 0 and .2 otherwise."""
    chain = posterior_host(seed)

    def law(clean: State) -> dict[State, float]:
        rate = [0.8 if token == 0 else 0.2 for token in clean]
        return {
            tuple(chain.vocab if hide else token for hide, token in zip(mask, clean)): float(
                np.prod([r if hide else 1 - r for hide, r in zip(mask, rate)])
            )
            for mask in np.ndindex(*(2,) * chain.length)
        }

    return at_least(predictor_gap(chain, law)[0], 0.01)


@statement(
    "predictor/bayes-normaliser",
    claim="counter-example: error of the predictor when P(z|o) is only proportional to α(z)·1{agree}",
    condition="equality: the paper writes ∝, and a normaliser C(o) that varies with o does not cancel in Bayes' rule",
    needs="shows: = is needed, not ∝",
    named=False,
)
def bayes_normaliser(seed: int, quick: bool) -> Outcome:
    """α(z) = 3^(number of visible zeros), normalised for each o: α never sees o, its normaliser does."""
    chain = posterior_host(seed)

    def law(clean: State) -> dict[State, float]:
        weights = {}
        for mask in np.ndindex(*(2,) * chain.length):
            canvas = tuple(chain.vocab if hide else token for hide, token in zip(mask, clean))
            weights[canvas] = 3.0 ** canvas.count(0)
        total = sum(weights.values())
        return {canvas: w / total for canvas, w in weights.items()}

    return at_least(predictor_gap(chain, law)[0], 0.01)
