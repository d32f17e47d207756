"""The bucket table: cells, values, infinite and sampled data."""

import numpy as np
import pytest

from dprm.theory import BucketTable, aliased_pair, myopic, random_chain


def test_cells_follow_phase_and_confidence_and_the_last_bin_is_closed():
    chain, table = myopic(), BucketTable(1.0, phases=4, bins=16)
    assert table.cell(chain, chain.start, 0) == (0, 11)
    assert table.cell(chain, chain.start, 1) == (0, 9)
    assert table.cell(chain, (1, 2, 2, 2), 1) == (1, 15)


def test_value_is_the_log_moment_and_empty_cells_are_zero():
    table = BucketTable(2.0)
    for reward in (0.0, 1.0):
        table.add((0, 0), float(np.exp(2.0 * reward)))
    assert table.value((0, 0)) == pytest.approx(np.log((1 + np.exp(2.0)) / 2) / 2)
    assert table.value((0, 1)) == 0.0
    assert table.gate((0, 1)) == 0.0


def test_gate_grows_with_the_count_up_to_one():
    table = BucketTable(1.0, ready=4)
    table.add((0, 0), 1.0)
    assert table.gate((0, 0)) == 0.25
    for _ in range(9):
        table.add((0, 0), 1.0)
    assert table.gate((0, 0)) == 1.0


def test_infinite_data_with_one_cell_per_state_recovers_the_exact_rule():
    chain = random_chain(1, length=4, beta=2.0)
    table = BucketTable(2.0, context=lambda chain, state, i: (state, i))
    table.fit(chain, chain.q0)
    assert chain.expected_reward(table.hard(chain)) == pytest.approx(chain.expected_reward(chain.hard))
    values = chain.beta * chain.R_star(chain.start)
    np.testing.assert_allclose(table.bonus(chain, chain.start), values, rtol=1e-10)
    np.testing.assert_allclose(table.soft_bon(chain, 3)(chain.start), chain.soft_bon(3)(chain.start), rtol=1e-10)


def test_context_tells_two_hosts_apart():
    pair = aliased_pair()
    table = BucketTable(1.0, context=lambda chain, state, i: pair.index(chain))
    for chain in pair:
        table.fit(chain, chain.q0)
    assert [chain.expected_reward(table.hard(chain)) for chain in pair] == [1.0, 1.0]


def test_many_sampled_trajectories_approach_infinite_data():
    chain = myopic()
    exact, sampled = BucketTable(1.0, phases=4), BucketTable(1.0, phases=4)
    exact.fit(chain, chain.q0)
    sampled.learn(chain, chain.q0, 2_000, np.random.default_rng(0))
    assert sum(sampled.count.values()) == 2_000 * chain.length
    for cell in exact.count:
        assert sampled.value(cell) == pytest.approx(exact.value(cell), abs=0.05)


def test_an_empty_table_keeps_the_confidence_order():
    chain = random_chain(4, length=4)
    table = BucketTable(1.0)
    assert chain.expected_reward(table.hard(chain)) == chain.expected_reward(chain.confidence)
