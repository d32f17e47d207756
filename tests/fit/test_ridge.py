"""Ridge regression with a penalty that other problems choose."""

import math

import pytest
import torch

from dprm.fit.ridge import FOLDS, PENALTIES, Problem, ridge
from dprm.order.noise import mix_rows


def drawn(seed, rows=2_000, features=12, noise=1.0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, features, generator=generator) * torch.linspace(0.1, 5.0, features)
    truth = torch.randn(features, generator=generator)
    y = x @ truth + noise * torch.randn(rows, generator=generator)
    return x, truth, y, torch.arange(rows) // 4


def closeness(weight, truth):
    """The cosine of two directions."""
    return float(torch.cosine_similarity(weight, truth.double(), dim=0))


def test_what_is_linear_is_found():
    x, truth, y, group = drawn(0, noise=0.01)
    found = ridge(x, y, group)
    assert closeness(found.weight, truth) > 0.999
    assert found.explained > 0.999
    assert found.penalty < PENALTIES[2]


def test_noise_that_a_problem_shares_is_taken_off():
    """As if the native decoding of a problem had failed or succeeded by chance: all its rows move together."""
    lost = {True: 0.0, False: 0.0}
    for seed in range(6):
        x, truth, y, group = drawn(seed, noise=8.0)
        y = y + 40.0 * torch.randn(len(x) // 4, generator=torch.Generator().manual_seed(seed)).repeat_interleave(4)
        for known in lost:
            found = ridge(x, y, group if known else torch.arange(len(x)))
            lost[known] += 1.0 - closeness(x.double() @ found.weight, x @ truth)
    assert lost[True] < 0.25 * lost[False]


def test_the_share_is_that_of_random_effects():
    generator = torch.Generator().manual_seed(4)
    inside, between = torch.randn(4000, 8, generator=generator) * 0.5, torch.randn(4000, 1, generator=generator) * 0.3
    group = torch.arange(4000).repeat_interleave(8)
    share = Problem.of(group).shared((inside + between).flatten().double())
    torch.testing.assert_close(share, torch.full_like(share, 1 - (0.25 / (0.25 + 8 * 0.09)) ** 0.5), atol=0.02, rtol=0)
    assert not Problem.of(torch.arange(50)).shared(torch.randn(50, generator=generator).double()).any()


def test_noise_gets_no_weight():
    for seed in range(5):
        x, _, _, group = drawn(seed)
        y = torch.randn(len(x), generator=torch.Generator().manual_seed(100 + seed))
        found = ridge(x, y, group)
        assert found.explained <= 0.01
        if found.penalty == math.inf:
            assert not found.weight.any()
            assert found.explained == 0.0


def test_it_is_judged_on_problems_left_out():
    x, _, y, group = drawn(1, rows=300, noise=5.0)
    found = ridge(x, y, group)
    problem = Problem.of(group)
    share = problem.shared(y.double())[problem.number]
    z = (x.double() - share.unsqueeze(1) * problem.means(x)[problem.number]) / x.double().std(0, correction=0)
    y = y.double() - share * problem.means(y)[problem.number]
    fold, predicted = mix_rows(group, 11) % FOLDS, torch.zeros_like(y)
    for k in range(FOLDS):
        level = ((1.0 - share) * (fold == k)).unsqueeze(1)
        z = z - level * (level.T @ z) / level.square().sum()
        y = y - level.squeeze(1) * (level.T @ y) / level.square().sum()
    for k in range(FOLDS):
        inside, outside = fold == k, fold != k
        gram = z[outside].T @ z[outside] + found.penalty * torch.eye(z.shape[1], dtype=torch.float64)
        predicted[inside] = z[inside] @ torch.linalg.solve(gram, z[outside].T @ y[outside])
    assert found.explained == pytest.approx(float(torch.cosine_similarity(predicted, y, dim=0)) ** 2, abs=1e-9)


def test_what_repeats_inside_a_problem_does_not_count_as_evidence():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 60, generator=generator).repeat_interleave(10, 0)
    y = torch.randn(40, generator=generator).repeat_interleave(10)
    assert ridge(x, y, torch.arange(400) // 10).explained < 0.05
    # As ten problems each they would explain themselves.
    assert ridge(x, y, torch.arange(400)).explained > 0.9


def test_a_column_without_variation_is_ignored():
    x, _, y, group = drawn(2)
    x[:, 3] = 7.0
    assert torch.isfinite(ridge(x, y, group).weight).all()


def test_what_all_comparisons_have_in_common_is_not_in_the_weights():
    x, _, y, group = drawn(5, noise=3.0)
    x, y = x.double(), y.double()
    found, shifted = ridge(x, y, group), ridge(x, y - 2.5, group)
    torch.testing.assert_close(shifted.weight, found.weight)
    assert shifted.explained == pytest.approx(found.explained)
    # Features of one sign could say the same as an intercept; they are not asked to.
    torch.testing.assert_close(ridge(x + 3.0, y - 2.5, group).weight, found.weight)
