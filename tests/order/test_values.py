"""Values, baselines, radius, shrinkage, drift."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dprm.order import Cells, Gate, Stats, drift, estimate, radius
from dprm.order.values import shrink
from tests.draws import seeds


def evidence(rewards, beta=2.0, cells=3, reward_range=(0.0, 1.0)):
    """Stats from {cell: list of rewards}."""
    stats = Stats(cells, beta, reward_range)
    for cell, values in rewards.items():
        stats.add(torch.full((len(values),), cell), torch.tensor(values, dtype=torch.float64))
    return stats


def log_mean_exp(values, beta):
    return math.log(sum(math.exp(beta * value) for value in values) / len(values)) / beta


@given(beta=st.floats(0.1, 30.0), rewards=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_without_baseline_values_are_the_paper_to_the_letter(beta, rewards):
    table = estimate(evidence({1: rewards}, beta), "none")
    assert table.value[1].item() == pytest.approx(log_mean_exp(rewards, beta), abs=1e-7)
    assert table.value[[0, 2]].tolist() == [0.0, 0.0]
    assert table.support.tolist() == [0, len(rewards), 0]


def test_global_values_are_relative_to_all_decisions_and_empty_cells_have_zero():
    rewards = {0: [0.1, 0.3], 1: [0.9]}
    table = estimate(evidence(rewards), "global")
    everything = log_mean_exp([0.1, 0.3, 0.9], 2.0)
    assert table.value[0].item() == pytest.approx(log_mean_exp(rewards[0], 2.0) - everything)
    assert table.value[1].item() == pytest.approx(log_mean_exp(rewards[1], 2.0) - everything)
    assert table.value[2].item() == 0.0


@given(shift=st.floats(-50, 50), scale=st.sampled_from([1.0, 0.1, 7.0]))
def test_global_values_do_not_see_a_constant_added_to_the_reward(shift, scale):
    rewards = {0: [0.1, 0.3], 1: [0.9, 0.2, 0.4]}
    moved = {cell: [value * scale + shift for value in values] for cell, values in rewards.items()}
    still = {cell: [value * scale for value in values] for cell, values in rewards.items()}
    a = estimate(evidence(still, 2.0, reward_range=(0.0, scale)), "global").value
    b = estimate(evidence(moved, 2.0, reward_range=(shift, shift + scale)), "global").value
    torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)


def test_a_tilt_that_underflows_is_still_finite():
    table = estimate(evidence({0: [0.0], 1: [1.0]}, beta=500.0), "none")
    assert torch.isfinite(table.value).all()
    assert table.value[1] > table.value[0]


def test_radius_is_the_formula_of_the_paper():
    rewards, beta, delta, horizon = [0.2, 0.9, 0.5, 0.5], 1.5, 0.1, 7
    stats = evidence({0: rewards}, beta)
    y = [math.exp(beta * reward) for reward in rewards]
    mean = sum(y) / 4
    variance = sum((value - mean) ** 2 for value in y) / 4
    level = math.log(3 * 3 * horizon**2 / delta)
    expected = (math.sqrt(2 * variance * level / 4) + 3 * (math.exp(beta) - 1) * level / 4) / beta
    bound = radius(stats, delta, horizon)
    assert bound[0].item() == pytest.approx(expected, rel=1e-6)
    assert math.isinf(bound[1])
    assert radius(stats, delta, horizon, mean_floor=2.0)[0].item() == pytest.approx(expected / 2, rel=1e-6)


def test_radius_covers_the_truth_and_shrinks_with_evidence():
    beta, misses = 1.0, 0
    truth = math.log((math.exp(beta) + 1) / 2) / beta
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        stats = Stats(1, beta)
        stats.add(torch.zeros(400, dtype=torch.int64), torch.randint(0, 2, (400,), generator=generator))
        off = abs(estimate(stats, "none").value.item() - truth)
        misses += off > radius(stats, 0.05).item()
    assert misses <= 0.05 * 200
    few, many = evidence({0: [0.1, 0.9] * 10}), evidence({0: [0.1, 0.9] * 1000})
    assert radius(many)[0] < radius(few)[0] / 5


def test_drift_is_the_step_of_the_cell_mean():
    before, after = evidence({0: [0.0], 1: [0.5]}, beta=1.0), evidence({0: [1.0], 2: [0.5]}, beta=1.0)
    assert drift(before, after).tolist() == pytest.approx([math.e - 1, 0.0, 0.0])


@given(seed=seeds)
def test_shrinkage_moves_sparse_cells_to_their_parents_and_leaves_rich_ones(seed):
    generator = torch.Generator().manual_seed(seed)
    cells = Cells(2, 3, 4)
    truth = torch.rand(24, generator=generator) * 0.2 + torch.arange(24) // 12 * 0.6
    stats = Stats(cells, 1.0)
    rich = torch.arange(24).repeat(3000)
    stats.add(rich, (truth[rich] + 0.1 * torch.rand(len(rich), generator=generator)).clamp(0, 1))
    n, s, _ = stats.sums
    mean, support = shrink(stats.sums, cells)
    torch.testing.assert_close(mean, s / n, atol=5e-3, rtol=0)
    assert (support >= n).all()
    lonely = Stats(cells, 1.0)
    keep = rich % 24 != 5
    lonely.add(rich[keep], (truth[rich[keep]]).clamp(0, 1))
    lonely.add(torch.tensor([5]), torch.tensor([1.0]))
    mean, support = shrink(lonely.sums, cells)
    siblings = (lonely.sums[1] / lonely.sums[0])[[4, 6, 7]]
    assert (mean[5] - siblings.mean()).abs() < (lonely.sums[1][5] - siblings.mean()).abs() + 1e-12
    assert support[5] >= 1


def test_shrinkage_gives_all_children_the_parent_where_they_do_not_differ():
    cells = Cells(1, 4, 1)
    stats = Stats(cells, 1.0)
    stats.add(torch.arange(4).repeat(50), torch.tensor([0.0, 1.0]).repeat_interleave(100))
    mean, _ = shrink(stats.sums, cells)
    torch.testing.assert_close(mean, mean.mean().expand(4), atol=1e-12, rtol=0)


def test_shrinkage_of_nothing_is_nothing():
    mean, support = shrink(Stats(Cells(2, 2, 2), 1.0).sums, Cells(2, 2, 2))
    assert torch.isfinite(mean).all()
    assert support.tolist() == [0.0] * 8


@pytest.mark.parametrize(
    ("gate", "step", "ramp"),
    [
        (Gate(0, 0, 64), 0, 1.0),
        (Gate(5, 5, 64), 4, 0.0),
        (Gate(5, 5, 64), 5, 1.0),
        (Gate(10, 20, 64), 15, 0.5),
        (Gate(10, 20, 64), 99, 1.0),
    ],
)
def test_gate_ramp(gate, step, ramp):
    assert gate.ramp(step) == ramp
    assert gate.readiness(torch.tensor([0.0, 16.0, 64.0, 99.0])).tolist() == [0.0, 0.25, 1.0, 1.0]


def test_reveals_of_one_trajectory_do_not_make_a_radius_smaller():
    """One trajectory that reveals a hundred positions of a cell says about its mean what a single reveal would."""
    reward = torch.rand(40, generator=torch.Generator().manual_seed(0))
    alone, many = Stats(2), Stats(2)
    alone.add(torch.zeros(40, dtype=torch.int64), reward)
    rows = torch.arange(40).repeat_interleave(100)
    many.add(torch.zeros(4000, dtype=torch.int64), reward[rows], trajectory=rows)
    assert many.trajectories.tolist() == alone.trajectories.tolist() == [40.0, 0.0]
    assert many.count.tolist() == [4000, 0]
    torch.testing.assert_close(radius(many), radius(alone))
