"""Ridge regression with a penalty that other problems choose."""

import math

import pytest
import torch

from dprm.fit.ridge import FOLDS, PENALTIES, ridge
from dprm.order.noise import mix_rows


def drawn(seed, rows=2_000, features=12, noise=1.0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, features, generator=generator) * torch.linspace(0.1, 5.0, features)
    truth = torch.randn(features, generator=generator)
    y = x @ truth + noise * torch.randn(rows, generator=generator)
    return x, truth, y, torch.arange(rows) // 4


def test_what_is_linear_is_found():
    x, truth, y, group = drawn(0, noise=0.01)
    found = ridge(x, y, group)
    torch.testing.assert_close(found.weight, truth.double(), atol=0.02, rtol=0.05)
    assert found.explained > 0.999
    assert found.penalty == PENALTIES[0]


def test_noise_gets_no_weight():
    for seed in range(5):
        x, _, _, group = drawn(seed)
        y = torch.randn(len(x), generator=torch.Generator().manual_seed(100 + seed))
        found = ridge(x, y, group)
        assert found.explained <= 0.01
        if found.penalty == math.inf:
            assert not found.weight.any()
            assert found.explained == 0.0


def test_the_error_is_that_of_problems_left_out():
    x, _, y, group = drawn(1, rows=300, noise=5.0)
    found = ridge(x, y, group)
    scale, fold = x.std(0).double(), mix_rows(group, 11) % FOLDS
    z, error = x.double() / scale, 0.0
    for k in range(FOLDS):
        inside, outside = fold == k, fold != k
        gram = z[outside].T @ z[outside] + found.penalty * torch.eye(z.shape[1], dtype=torch.float64)
        weight = torch.linalg.solve(gram, z[outside].T @ y[outside].double())
        error += (y[inside].double() - z[inside] @ weight).square().sum().item()
    assert found.explained == pytest.approx(1.0 - error / y.double().square().sum().item(), abs=1e-9)


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
