"""Constructed chains. Each exists to show one fact, exactly."""

from typing import Any

import numpy as np

from dprm.theory.canvas import conditionals_of
from dprm.theory.chain import Chain, Policy, State
from dprm.theory.laws import normalised


def myopic(beta: float = 1.0, target: State = (1, 1, 1, 1)) -> Chain:
    """L=4, V=2: x_0 is the most confident position (.70 for token 0) and the wrong one to reveal first.

    1111 has mass .30 and is the only sequence with x_0 = 1. Given x_0 = 0 every other position leans to 0; started
    anywhere else (.58 for token 1), every later conditional leans to 1, x_0 included. Reward 1 for 1111 only:
    confidence order reaches 0000 (E[R] = 0); the hard rule reaches 1111 once β > log(.70/.58), where one unit of value
    outweighs the difference of the two confidences.
    """
    joint, reward = np.zeros((2, 2, 2, 2)), np.zeros((2, 2, 2, 2))
    joint[1, 1, 1, 1] = 0.30
    joint[0, 1, 1, 0] = joint[0, 1, 0, 1] = joint[0, 0, 1, 1] = 0.14
    joint[0, 0, 0, 0] = 0.28
    reward[target] = 1.0
    return Chain(joint, reward, beta=beta)


def keyed(beta: float = 1.0) -> Chain:
    """L=6, V=2: only an order that begins with x_2 earns anything, neither the surest position nor the least sure.

    x_2 = 1 has mass .58; given it, every other position leans to 1. Of the others each leans to 0 by itself, with
    confidence .66, .52, .70, .55, .69, and a 0 there makes 0 likely everywhere. Reward 1 for 111111 only, which a
    random order reaches in one case of six.
    """
    joint, reward = np.zeros((2,) * 6), np.zeros((2,) * 6)
    joint[0, 0, 0, 0, 0, 0] = 0.42
    joint[1, 1, 1, 1, 1, 1] = 0.30
    for mass, zeros in ((0.10, (0, 1, 3, 4, 5)), (0.03, (0, 3, 4, 5)), (0.11, (0, 3, 5)), (0.03, (3, 5)), (0.01, (3,))):
        joint[tuple(int(position not in zeros) for position in range(6))] = mass
    reward[1, 1, 1, 1, 1, 1] = 1.0
    return Chain(joint, reward, beta=beta)


def aliased_pair(beta: float = 1.0) -> tuple[Chain, Chain]:
    """Two prompts with the same denoiser and opposite targets, 1111 and 0000.

    Every cell made of phase, confidence and position mixes the two evenly, so one shared table cannot beat 1/2; a
    context coordinate that tells the prompts apart gets 1.
    """
    return myopic(beta), myopic(beta, target=(0, 0, 0, 0))


def random_chain(
    seed: int,
    *,
    length: int = 5,
    vocab: int = 3,
    concentration: float = 0.08,
    reward: str = "uniform",
    noise: float = 0.0,
    **options: Any,
) -> Chain:
    """A Dirichlet(concentration) joint over V^L with a random reward.

    Args:
        reward: "uniform" (i.i.d. U[0,1]), "sparse" (1 on a tenth of the sequences) or "likelihood" (p(x)/max p).
        noise: weight of an independent Dirichlet(1) law mixed into every conditional: a denoiser that belongs to no
            joint. 0 keeps the exact conditionals.
        options: further arguments of `Chain`: tokens, m, beta.
    """
    rng = np.random.default_rng(seed)
    shape = (vocab,) * length
    joint = rng.dirichlet(np.full(vocab**length, concentration)).reshape(shape)
    if reward == "uniform":
        values = rng.random(shape)
    elif reward == "sparse":
        values = (rng.random(shape) < 0.1).astype(float)
    elif reward == "likelihood":
        values = joint / joint.max()
    else:
        raise ValueError(f"reward must be 'uniform', 'sparse' or 'likelihood', got {reward!r}")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise must be in [0, 1], got {noise}")
    conditionals = conditionals_of(joint)
    if noise > 0:
        conditionals = (1 - noise) * conditionals + noise * rng.dirichlet(np.ones(vocab), conditionals.shape[:-1])
    return Chain(joint, values, conditionals=conditionals, **options)


def null_control(seed: int, *, length: int = 4, **options: Any) -> Chain:
    """Tokens sampled from the exact conditionals, one at a time: every order gives the joint, so nothing can gain."""
    return random_chain(seed, length=length, concentration=0.5, tokens="sampled", **options)


def random_policy(chain: Chain, rng: np.random.Generator) -> Policy:
    """A policy for m = 1 with a random law at every canvas."""
    table = rng.random((chain.vocab + 1,) * chain.length + (chain.length,))
    return lambda state: normalised(table[state][list(chain.masked(state))])


def teacher_forced(chain: Chain, clean: State) -> Chain:
    """The same host under teacher forcing: its denoiser always answers with the clean sequence."""
    answer = np.eye(chain.vocab)[list(clean)]
    return chain.replace(conditionals=np.broadcast_to(answer, chain.conditionals.shape), tokens="greedy")
