"""The tracking experiment: what it calls exact is exact, and its drift is the one the theorem means."""

import numpy as np
import pytest

from dprm.theory import BucketTable, online, random_chain


def test_the_means_of_cells_are_those_of_a_table_with_infinite_data():
    chain = random_chain(0, length=4, beta=2.0)
    course = online.Course([chain])
    table = BucketTable(2.0, phases=4, bins=online.BINS)
    table.fit(chain, chain.q0)
    for (phase, level), count in table.count.items():
        mean = course.mu[0, phase * online.BINS + level]
        assert mean == pytest.approx(np.exp(2.0 * table.value((phase, level))))
        assert count > 0
    assert np.isfinite(course.mu[0]).sum() == len(table.count)


def test_variation_adds_up_what_is_seen_and_skips_what_is_not():
    nothing = np.nan
    mu = np.array([[1.0, nothing, 2.0], [3.0, 5.0, nothing], [2.0, 4.0, 5.0]])
    assert online.variation(mu).tolist() == [3.0, 1.0, 3.0]


def test_a_host_that_stays_has_no_drift():
    course = online.Course([random_chain(1, length=3)] * 4)
    assert course.drift.max() == 0.0


def test_a_training_moves_the_proposal_and_ends_at_the_exact_host():
    chains = online.trained_host(0, updates=3)
    exact = random_chain(0, length=4, beta=2.0)
    assert np.allclose(chains[-1].conditionals, exact.conditionals)
    assert not np.allclose(chains[0].q0(chains[0].start), chains[-1].q0(chains[-1].start))


def test_more_data_and_no_aliasing_leave_less_error():
    course = online.Course(online.jumping(0, 0.0))
    rng = np.random.default_rng(0)
    assert course.run(10**6, rng)[0] <= course.run(10, rng)[0]
