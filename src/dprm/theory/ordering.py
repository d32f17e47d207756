"""When order matters and when it cannot: the null control, the myopic host, aliasing, learning online."""

import numpy as np

from dprm.theory.bucket import BucketTable, Context
from dprm.theory.chain import Chain
from dprm.theory.examples import aliased_pair, null_control, random_chain
from dprm.theory.examples import myopic as myopic_chain
from dprm.theory.laws import total_variation
from dprm.theory.statement import Outcome, at_least, at_most, statement


def order_effect(chain: Chain) -> float:
    """Largest TV between the terminal law of an order and the joint, and the range of E[R] over all orders."""
    assert chain.joint is not None
    policies = (chain.confidence, chain.random, chain.q0, chain.pi_star, chain.hard, chain.soft_bon(3))
    gap = max(total_variation(chain.terminal_law(policy), chain.joint) for policy in policies)
    return max(gap, chain.best_order() - chain.worst_order())


@statement(
    claim="tokens sampled from exact conditionals, m = 1: TV to the joint and best − worst order, largest",
    condition="exact conditionals, sampled tokens, one per step; then every order gives the joint and DPRM gains 0",
    unnamed="exact conditionals, sampled, m=1",
)
def null(seed: int, quick: bool) -> Outcome:
    """Six policies and the dynamic programme over all orders."""
    return at_most(max(order_effect(null_control(seed + k, beta=4.0)) for k in range(4 if quick else 20)), 1e-12)


@statement(
    claim="counter-example: smallest best − worst E[R] when one condition of the null is dropped",
    condition="a noisy denoiser, greedy tokens or parallel reveals each make order matter",
    unnamed="shows: all three are needed",
)
def null_broken(seed: int, quick: bool) -> Outcome:
    """The same hosts with noise .3, with greedy tokens, and with m = 2; each the largest of several hosts."""
    ranges = {"noise": 0.0, "greedy": 0.0, "m=2": 0.0}
    for k in range(12 if quick else 40):
        host = null_control(seed + k)
        noisy = random_chain(seed + k, length=4, concentration=0.5, noise=0.3, tokens="sampled")
        for name, chain in zip(ranges, (noisy, host.replace(tokens="greedy"), host.replace(m=2))):
            ranges[name] = max(ranges[name], chain.best_order() - chain.worst_order())
    return at_least(min(ranges.values()), 1e-3, "; ".join(f"{k}: {v:.3f}" for k, v in ranges.items()))


@statement(
    claim="E[R] of the hard rule minus E[R] of confidence order on the myopic host, β just above log(.70/.58)",
    condition="β > log(ψ_1/ψ_2) = log(.70/.58): the value must outweigh the confidence gap",
    unnamed="beta > log(.70/.58) = .188",
)
def myopic(seed: int, quick: bool) -> Outcome:
    """Just below the threshold the hard rule must still be confidence (side condition)."""
    threshold = np.log(0.70 / 0.58)
    below, above = myopic_chain(threshold - 1e-6), myopic_chain(threshold + 1e-6)
    gain = above.expected_reward(above.hard) - above.expected_reward(above.confidence)
    equal = below.expected_reward(below.hard) == below.expected_reward(below.confidence)
    gibbs = {chain.beta: chain.expected_reward(chain.pi_star) for chain in map(myopic_chain, (1.0, 2.0, 4.0, 8.0))}
    note = f"q0 {above.expected_reward(above.q0):.3f}; π* " + ", ".join(f"{v:.4f} (β={b:g})" for b, v in gibbs.items())
    return at_least(gain, 1.0 - 1e-12, note, equal)


@statement(
    claim="E[R] of one table with a context coordinate minus the best without, two prompts with opposite targets",
    condition="cells that tell apart states of different value; (phase, confidence, position) does not",
    named="cells without aliasing",
)
def aliased(seed: int, quick: bool) -> Outcome:
    """Infinite data under q0 from both prompts, one table, hard rule."""
    pair, scores = aliased_pair(), {}
    contexts: dict[str, Context] = {
        "phase and bin": lambda chain, state, position: None,
        "position": lambda chain, state, position: position,
        "prompt": lambda chain, state, position: pair.index(chain),
    }
    for kind, context in contexts.items():
        table = BucketTable(1.0, context=context)
        for chain in pair:
            table.fit(chain, chain.q0)
        scores[kind] = float(np.mean([chain.expected_reward(table.hard(chain)) for chain in pair]))
    confidence = float(np.mean([chain.expected_reward(chain.confidence) for chain in pair]))
    note = f"confidence {confidence:.2f}; " + "; ".join(f"{k} {v:.2f}" for k, v in scores.items())
    return at_least(scores["prompt"] - max(scores["phase and bin"], scores["position"], confidence), 0.5 - 1e-9, note)


@statement(
    claim="E[R] after learning from an empty table on the myopic host: drawn shortlists minus top-m on the full set",
    condition="exploration: from an empty table top-m repeats the host's order for ever, whatever that order earns",
    unnamed="exploration",
)
def online(seed: int, quick: bool) -> Outcome:
    """20 rounds of 8 trajectories; each is then deployed with the hard rule."""
    rewards = {rule: learn_online(rule, seed) for rule in ("top_m", "soft_bon")}
    note = "; ".join(f"{rule}: {value:.2f}" for rule, value in rewards.items())
    return at_least(rewards["soft_bon"] - rewards["top_m"], 1.0 - 1e-9, note)


def learn_online(rule: str, seed: int, rounds: int = 20, trajectories: int = 8) -> float:
    """E[R] of the learned hard rule on the myopic host, β = 2, values credited on-policy from an empty table."""
    chain, rng = myopic_chain(2.0), np.random.default_rng(seed)
    table = BucketTable(chain.beta, phases=4)
    for _ in range(rounds):
        policy = table.hard(chain) if rule == "top_m" else table.soft_bon(chain, 3)
        table.learn(chain, policy, trajectories, rng)
    return chain.expected_reward(table.hard(chain))
