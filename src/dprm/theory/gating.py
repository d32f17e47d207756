"""The entropy cap of a confidence-gated decoder.

A decoder is (1−δ)-gated if every token it commits has conditional probability at least 1−δ at its mode. Then

    H(X) ≤ L h_V(δ),   h_V(δ) = h_b(δ) + δ log(V−1),

if δ ≤ 1−1/V, where h_V is increasing, and if the order is a function of the canvas. A random order adds entropy.
"""

from math import factorial

import numpy as np

from dprm.theory.chain import Chain
from dprm.theory.examples import myopic, random_policy
from dprm.theory.laws import entropy
from dprm.theory.statement import Outcome, at_least, at_most, statement

LENGTH = 4


def cap(delta: float, vocab: int) -> float:
    """L h_V(δ) in nats."""
    return LENGTH * (entropy(np.array([delta, 1 - delta])) + delta * float(np.log(vocab - 1)))


def gated_host(delta: float, vocab: int, rng: np.random.Generator) -> Chain:
    """At every canvas and position one random token has probability 1−δ, the others share δ.

    This is the law of largest entropy under the gate, so bounds on gated decoders are tight on it.
    """
    favourite = rng.integers(vocab, size=(vocab + 1,) * LENGTH + (LENGTH,))
    table = np.where(np.arange(vocab) == favourite[..., None], 1.0 - delta, delta / (vocab - 1))
    return Chain(None, np.zeros((vocab,) * LENGTH), conditionals=table, tokens="sampled")


def entropy_ratio(delta: float, vocab: int, rng: np.random.Generator) -> float:
    """H(X) / (L h_V(δ)) for a gated host decoded in a deterministic, state-dependent order."""
    chain = gated_host(delta, vocab, rng)
    policy = random_policy(chain, rng)
    return entropy(chain.terminal_law(lambda state: chain.argmax(policy(state)))) / cap(delta, vocab)


@statement(
    claim="H(X) / (L h_V(δ)), largest over δ and V for gated hosts of largest entropy (the cap is attained)",
    condition="δ ≤ 1−1/V, and an order that is a function of the canvas",
    unnamed="delta <= 1-1/V, fixed order",
)
def entropy_cap(seed: int, quick: bool) -> Outcome:
    """Exact terminal laws; the order is a random table over canvases."""
    rng = np.random.default_rng(seed)
    ratios = [entropy_ratio(delta, vocab, rng) for vocab in (2, 3, 4) for delta in (0.01, 0.1, 0.3, 1 - 1 / vocab)]
    return at_most(max(ratios), 1.0 + 1e-9)


@statement(
    claim="counter-example: H(X) / (L h_V(δ)) at δ = .9, V = 2 for a host whose mode has probability 1/2 ≥ 1−δ",
    condition="δ ≤ 1−1/V: beyond it h_V falls, while the gate only becomes weaker",
    unnamed="shows: delta <= 1-1/V",
)
def large_delta(seed: int, quick: bool) -> Outcome:
    """Uniform tokens pass the gate."""
    chain = gated_host(0.5, 2, np.random.default_rng(seed))
    return at_least(entropy(chain.terminal_law(chain.confidence)) / cap(0.9, 2), 1.0 + 1e-6)


@statement(
    claim="counter-example: H(X) of greedy decoding (δ = 0, cap 0) when the order is drawn from q0",
    condition="a deterministic order; Soft-BoN and sampled confidence draw theirs. Safe: L h_V(δ) + log L!",
    unnamed="shows: fixed order is needed",
)
def random_order(seed: int, quick: bool) -> Outcome:
    """The myopic host: every order is deterministic in its tokens, and two sequences are reached."""
    chain = myopic()
    drawn, fixed = (entropy(chain.terminal_law(policy)) for policy in (chain.q0, chain.confidence))
    return at_least(drawn, 0.1, f"confidence argmax has H = {fixed:.1f}", drawn <= np.log(factorial(4)))
