"""Teacher-forced masking visits the canvases that inference visits: marginal agreement, and where it ends.

o is a clean sequence, z a canvas. Inference draws tokens from the posterior, teacher forcing copies them from o; both
laws of Z_t are enumerated and compared.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dprm.theory.chain import Chain, Policy, State
from dprm.theory.examples import random_chain
from dprm.theory.laws import arrays, normalised, total_variation
from dprm.theory.statement import EXACT, Outcome, at_least, at_most, statement

ForcedPolicy = Callable[[State, State], np.ndarray]


def posterior_host(seed: int, **options: Any) -> Chain:
    """A host that samples its tokens from the exact conditionals of a random joint."""
    return random_chain(seed, length=4, concentration=0.5, tokens="sampled", **options)


def clean_sequences(chain: Chain) -> list[tuple[State, float]]:
    """The pairs (o, p(o)) of the joint."""
    assert chain.joint is not None
    return [(o, float(p)) for o, p in np.ndenumerate(chain.joint)]


def blind(policy: Policy) -> ForcedPolicy:
    """A policy of the visible state, as a teacher-forced policy that ignores the clean sequence."""
    return lambda state, _clean: policy(state)


def forced_law(chain: Chain, clean: State, policy: ForcedPolicy) -> list[dict[State, float]]:
    """The law of Z̃_t given O = o for t = 0..T: the policy chooses positions, o supplies their tokens."""
    levels = [{chain.start: 1.0}]
    for _ in range(chain.steps):
        after: dict[State, float] = {}
        for state, mass in levels[-1].items():
            for A, share in zip(chain.candidates(state), policy(state, clean)):
                canvas = tuple(clean[i] if i in A else token for i, token in enumerate(state))
                after[canvas] = after.get(canvas, 0.0) + mass * float(share)
        levels.append(after)
    return levels


def marginal_gap(chain: Chain, decode: Policy, forced: ForcedPolicy) -> float:
    """max over t of TV(law of Z_t in inference, law of Z̃_t under teacher forcing with O ~ p)."""
    mixture: list[dict[State, float]] = [{} for _ in range(chain.steps + 1)]
    for clean, probability in clean_sequences(chain):
        for level, law in zip(mixture, forced_law(chain, clean, forced)):
            for state, mass in law.items():
                level[state] = level.get(state, 0.0) + mass * probability
    return max(total_variation(*arrays(*levels)) for levels in zip(chain.occupancy(decode), mixture))


@statement(
    claim="teacher-forced and inference marginals agree at every step; largest TV over orders and steps",
    condition="one position per step, tokens from the exact posterior, order a function of the visible state",
    needs="m=1, posterior tokens, visible order",
    named=True,
)
def marginals(seed: int, quick: bool) -> Outcome:
    """Three visible-state orders: confidence argmax, ψ-proportional, and a random table over canvases."""
    worst = 0.0
    for k in range(1 if quick else 5):
        chain = posterior_host(seed + k)
        table = np.random.default_rng(seed + k).random((chain.vocab + 1,) * chain.length + (chain.length,))

        def tabled(state: State, chain: Chain = chain, table: np.ndarray = table) -> np.ndarray:
            return normalised(table[state][list(chain.masked(state))])

        for policy in (chain.confidence, chain.q0, tabled):
            worst = max(worst, marginal_gap(chain, policy, blind(policy)))
    return at_most(worst, EXACT)


@statement(
    claim="counter-example: marginal TV when the training order looks at the hidden token",
    condition="order depends on the visible state only",
    needs="shows: visible order is needed",
    named=True,
)
def peeking(seed: int, quick: bool) -> Outcome:
    """Training reveals hidden zeros first; inference uses that order averaged over p(o|z)."""
    chain = posterior_host(seed)

    def zeros_first(state: State, clean: State) -> np.ndarray:
        return normalised(np.array([10.0 if clean[i] == 0 else 1.0 for (i,) in chain.candidates(state)]))

    def averaged(state: State) -> np.ndarray:
        law = np.zeros(len(chain.candidates(state)))
        for clean, probability in clean_sequences(chain):
            if all(z in (x, chain.vocab) for z, x in zip(state, clean)):
                law += probability * zeros_first(state, clean)
        return normalised(law)

    return at_least(marginal_gap(chain, averaged, zeros_first), 0.01)


@statement(
    claim="counter-example: marginal TV when two positions are revealed per step, or tokens are greedy; the smaller",
    condition="one token per step from the posterior; hosts decode in parallel and often greedily",
    needs="shows: m=1, posterior tokens needed",
    named=True,
)
def parallel(seed: int, quick: bool) -> Outcome:
    """Parallel reveals multiply marginals where teacher forcing copies the joint."""
    hosts = {"m=2": posterior_host(seed, m=2), "greedy": posterior_host(seed).replace(tokens="greedy")}
    gaps = {name: marginal_gap(chain, chain.confidence, blind(chain.confidence)) for name, chain in hosts.items()}
    return at_least(min(gaps.values()), 0.01, "; ".join(f"{name}: {gap:.3f}" for name, gap in gaps.items()))
