"""The real order module on a host where confidence is exactly wrong.

Confidence reveals position 0 first and ends in 0000, reward 0; any other beginning ends in 1111, reward 1.
"""

import numpy as np
import pytest
import torch

import dprm
from dprm.theory import aliased_pair, myopic, null_control

CHAIN = myopic(beta=2.0)
MASK = 2


def mean_reward(order, chain=CHAIN, rows=64, seed=0, **how):
    result = dprm.decode(chain.denoiser(), torch.full((rows, 4), MASK), order, mask_id=MASK, seed=seed, **how)
    return float(chain.reward_of(result.tokens).mean()), result


def learn(rule, explore, rounds=20, rows=16, **settings):
    """Algorithm 1, from an empty table: decode, observe, repeat."""
    order = dprm.Order(phases=4, beta=2.0, ready=8, rule=rule, explore=explore, shortlist=(3, 64, 3), **settings)
    for turn in range(rounds):
        _, result = mean_reward(order, rows=rows, seed=turn)
        order.observe(result.trace, CHAIN.reward_of(result.tokens), group=torch.zeros(rows, dtype=torch.int64))
    return order


def test_confidence_gets_nothing_and_the_exact_rule_everything():
    assert mean_reward(dprm.Order())[0] == 0.0
    assert CHAIN.expected_reward(CHAIN.confidence) == 0.0
    assert CHAIN.expected_reward(CHAIN.hard) == pytest.approx(1.0)


@pytest.mark.parametrize("rule", ["soft_bon", "shortlist_top_m"])
def test_a_table_fitted_online_from_empty_finds_the_better_order(rule):
    policy = learn(rule, explore=True).policy()
    reward, result = mean_reward(dprm.Order.from_policy(policy, rule="top_m"))
    assert reward == 1.0
    assert (result.trace.changed >= 1).all()


@pytest.mark.parametrize("baseline", ["auto", "global", "none"])
def test_top_m_cannot_leave_the_host_order_from_an_empty_table(baseline):
    """It repeats one trajectory, so every cell it ever visits has the same reward, and the same value."""
    order = learn("top_m", explore=True, rounds=50, baseline=baseline)
    assert mean_reward(order)[0] == 0.0
    assert order.table().value.abs().max() < 1e-9


@pytest.mark.parametrize("rule", ["soft_bon", "shortlist_top_m"])
def test_nothing_is_drawn_from_an_empty_table_without_exploring(rule):
    assert mean_reward(learn(rule, explore=False))[0] == 0.0


def test_orders_differ_at_equal_model_calls():
    learned = dprm.Order.from_policy(learn("soft_bon", explore=True).policy(), rule="top_m")
    assert mean_reward(learned)[1].nfe == mean_reward(dprm.Order())[1].nfe == 4


def test_the_tilted_order_of_the_real_decoder_follows_the_exact_chain():
    """soft_bon with exact values in the cells is the exact Soft-BoN policy of the chain."""
    chain = myopic(beta=2.0)
    order = dprm.Order(phases=4, bins=64, beta=2.0, ready=1, rule="soft_bon", shortlist=(6, 64, 6), explore=True)
    reading = dprm.read(chain.denoiser()(torch.full((1, 4), MASK)))
    values = torch.from_numpy(chain.R_star((2, 2, 2, 2)))
    stats = dprm.Stats(order.cells, 2.0)
    cell = order.select(reading, torch.ones(1, 4, dtype=torch.bool), 1, 0.0, step=0).cell[0]
    assert cell[1] == cell[2] == cell[3] != cell[0]
    stats.add(cell, values.clamp(0, 1))
    order.merge(stats)
    first = dprm.decode(chain.denoiser(), torch.full((40000, 4), MASK), order, mask_id=MASK, until=1).step_map
    seen = first.float().mean(0).double().numpy()
    np.testing.assert_allclose(seen, chain.soft_bon(6)((2, 2, 2, 2)), atol=0.012)


def test_cells_that_alias_two_prompts_cannot_serve_both_and_aux_can():
    """Opposite targets, one denoiser: only a cell that tells the prompts apart helps."""
    pair = aliased_pair(beta=2.0)
    results = {}
    for aux in (1, 2):
        order = dprm.Order(phases=4, beta=2.0, ready=8, rule="soft_bon", explore=True, aux=aux, shortlist=(3, 64, 3))

        def context(prompt, aux=aux):
            return torch.full((32, 4), prompt if aux == 2 else 0)

        for turn in range(30):
            for prompt, chain in enumerate(pair):
                _, result = mean_reward(order, chain, rows=32, seed=turn, aux=context(prompt))
                group = torch.zeros(32, dtype=torch.int64)
                order.observe(result.trace, chain.reward_of(result.tokens), group=group)
        deployed = dprm.Order.from_policy(order.policy(), rule="top_m")
        results[aux] = [mean_reward(deployed, c, rows=32, aux=context(p))[0] for p, c in enumerate(pair)]
    assert sum(results[1]) <= 1.0
    assert sum(results[2]) == 2.0


def test_null_control_every_order_decodes_the_joint():
    """Sampled tokens from exact conditionals, one at a time: the order cannot matter."""
    chain = null_control(3, length=3, vocab=2)
    rows = 60000
    for signal in ("confidence", "random", "left_to_right"):
        how = {"mask_id": 2, "temperature": 1.0, "confidence_of": "mode", "seed": 7}
        result = dprm.decode(chain.denoiser(), torch.full((rows, 3), 2), dprm.Order(signal=signal), **how)
        code = (result.tokens * torch.tensor([4, 2, 1])).sum(1)
        law = code.bincount(minlength=8) / rows
        np.testing.assert_allclose(law.numpy(), chain.joint.reshape(-1), atol=0.012)
