"""Teacher-forced masking visits the canvases that inference visits: marginal agreement, and where it ends.

o is a clean sequence, z a canvas. Inference draws tokens from the posterior, teacher forcing copies them from o; both
laws of Z_t are enumerated and compared.
"""

from collections.abc import Callable

import numpy as np

from dprm.theory.chain import Chain, Policy, State
from dprm.theory.examples import null_control, random_policy, teacher_forced
from dprm.theory.laws import arrays, normalised, total_variation
from dprm.theory.statement import EXACT, Outcome, at_least, at_most, statement

ForcedPolicy = Callable[[State], Policy]
"""o -> the policy of teacher forcing towards o."""


def clean_sequences(chain: Chain) -> list[tuple[State, float]]:
    """The pairs (o, p(o)) of the joint with p(o) > 0."""
    assert chain.joint is not None
    return [(o, float(p)) for o, p in np.ndenumerate(chain.joint) if p > 0]


def blind(policy: Policy) -> ForcedPolicy:
    """A policy of the visible state, as a teacher-forced policy that ignores the clean sequence."""
    return lambda _clean: policy


def marginal_gap(chain: Chain, decode: Policy, forced: ForcedPolicy) -> float:
    """max over t of TV(law of Z_t in inference, law of Z̃_t under teacher forcing with O ~ p)."""
    mixture: list[dict[State, float]] = [{} for _ in range(chain.steps + 1)]
    for clean, probability in clean_sequences(chain):
        # The law of Z̃_t given O = o: the policy chooses positions, o supplies their tokens.
        for level, law in zip(mixture, teacher_forced(chain, clean).occupancy(forced(clean))):
            for state, mass in law.items():
                level[state] = level.get(state, 0.0) + mass * probability
    return max(total_variation(*arrays(*levels)) for levels in zip(chain.occupancy(decode), mixture))


@statement(
    claim="teacher-forced and inference marginals agree at every step; largest TV over orders and steps",
    condition="one position per step, tokens from the exact posterior, order a function of the visible state",
    named="m=1, posterior tokens, visible order",
)
def marginals(seed: int, quick: bool) -> Outcome:
    """Three visible-state orders: confidence argmax, ψ-proportional, and a random table over canvases."""
    worst = 0.0
    for k in range(1 if quick else 5):
        chain = null_control(seed + k)
        for policy in (chain.confidence, chain.q0, random_policy(chain, np.random.default_rng(seed + k))):
            worst = max(worst, marginal_gap(chain, policy, blind(policy)))
    return at_most(worst, EXACT)


@statement(
    claim="counter-example: marginal TV when the training order looks at the hidden token",
    condition="order depends on the visible state only",
    named="shows: visible order is needed",
)
def peeking(seed: int, quick: bool) -> Outcome:
    """Training reveals hidden zeros first; inference uses that order averaged over p(o|z)."""
    chain = null_control(seed)

    def zeros_first(clean: State) -> Policy:
        return lambda state: normalised(np.array([10.0 if clean[i] == 0 else 1.0 for i in chain.masked(state)]))

    def averaged(state: State) -> np.ndarray:
        law = np.zeros(len(chain.candidates(state)))
        for clean, probability in clean_sequences(chain):
            if all(z in (x, chain.vocab) for z, x in zip(state, clean)):
                law += probability * zeros_first(clean)(state)
        return normalised(law)

    return at_least(marginal_gap(chain, averaged, zeros_first), 0.01)


@statement(
    claim="counter-example: marginal TV when two positions are revealed per step, or tokens are greedy; the smaller",
    condition="one token per step from the posterior; hosts decode in parallel and often greedily",
    named="shows: m=1, posterior tokens needed",
)
def parallel(seed: int, quick: bool) -> Outcome:
    """Parallel reveals multiply marginals where teacher forcing copies the joint."""
    hosts = {"m=2": null_control(seed).replace(m=2), "greedy": null_control(seed).replace(tokens="greedy")}
    gaps = {name: marginal_gap(chain, chain.confidence, blind(chain.confidence)) for name, chain in hosts.items()}
    return at_least(min(gaps.values()), 0.01, "; ".join(f"{name}: {gap:.3f}" for name, gap in gaps.items()))
