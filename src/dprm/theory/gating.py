"""The entropy cap of a confidence-gated decoder.

A decoder is (1−δ)-gated if every token it commits has conditional probability at least 1−δ at its mode. Then

    H(X) ≤ L h_V(δ),   h_V(δ) = h_b(δ) + δ log(V−1),

if δ ≤ 1−1/V, where h_V is increasing, and if the order is a function of the canvas. A random order adds entropy.
"""

from math import factorial

import numpy as np

from dprm.theory.chain import Chain, State
from dprm.theory.examples import gated_conditionals, myopic
from dprm.theory.laws import entropy
from dprm.theory.statement import Outcome, at_least, at_most, statement


def cap(delta: float, vocab: int) -> float:
    """h_V(δ) in nats."""
    return entropy(np.array([delta, 1 - delta])) + delta * float(np.log(vocab - 1))


def _gated(delta: float, vocab: int, rng: np.random.Generator) -> Chain:
    reward = np.zeros((vocab,) * 4)
    return Chain(None, reward, conditionals=gated_conditionals(4, vocab, delta, rng), tokens="sampled")


def entropy_ratio(delta: float, vocab: int, rng: np.random.Generator) -> float:
    """H(X) / (L h_V(δ)) for a gated host decoded in a deterministic, state-dependent order."""
    chain = _gated(delta, vocab, rng)
    preference = rng.random((vocab + 1,) * 4 + (4,))

    def order(state: State) -> np.ndarray:
        return chain.argmax(preference[state][list(chain.masked(state))])

    return entropy(chain.terminal_law(order)) / (chain.length * cap(delta, vocab))


@statement(
    "gating/entropy-cap",
    claim="H(X) / (L h_V(δ)), largest over δ and V for gated hosts of largest entropy (the cap is attained)",
    condition="δ ≤ 1−1/V, and an order that is a function of the canvas",
    needs="delta <= 1-1/V, fixed order",
    named=False,
)
def entropy_cap(seed: int, quick: bool) -> Outcome:
    """Exact terminal laws; the order is a random table over canvases."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for vocab in (2, 3, 4):
        for delta in (0.01, 0.1, 0.3, 1 - 1 / vocab):
            worst = max(worst, entropy_ratio(delta, vocab, rng))
    return at_most(worst, 1.0 + 1e-9)


@statement(
    "gating/large-delta",
    claim="counter-example: H(X) / (L h_V(δ)) at δ = .9, V = 2 for a host whose mode has probability 1/2 ≥ 1−δ",
    condition="δ ≤ 1−1/V: beyond it h_V falls, while the gate only becomes weaker",
    needs="shows: delta <= 1-1/V",
    named=False,
)
def large_delta(seed: int, quick: bool) -> Outcome:
    """Uniform tokens pass the gate."""
    chain = _gated(0.5, 2, np.random.default_rng(seed))
    return at_least(entropy(chain.terminal_law(chain.confidence)) / (chain.length * cap(0.9, 2)), 1.0 + 1e-6)


@statement(
    "gating/random-order",
    claim="counter-example: H(X) of greedy decoding (δ = 0, cap 0) when the order is drawn from q0",
    condition="a deterministic order; Soft-BoN and sampled confidence draw theirs. Safe: L h_V(δ) + log L!",
    needs="shows: fixed order is needed",
    named=False,
)
def random_order(seed: int, quick: bool) -> Outcome:
    """The myopic host: every order is deterministic in its tokens, and two sequences are reached."""
    chain = myopic()
    measured = entropy(chain.terminal_law(chain.q0))
    fixed = entropy(chain.terminal_law(chain.confidence))
    return at_least(measured, 0.1, f"confidence argmax has H = {fixed:.1f}", also=measured <= np.log(factorial(4)))
