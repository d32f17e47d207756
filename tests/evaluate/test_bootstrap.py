"""Intervals."""

import pytest
import torch

from dprm.evaluate.bootstrap import mean_interval, paired_interval


def test_the_interval_covers_the_truth_as_often_as_it_says():
    generator = torch.Generator().manual_seed(0)
    covered = 0
    for trial in range(300):
        sample = (torch.rand(80, generator=generator) < 0.3).float()
        interval = mean_interval(sample, resamples=400, seed=trial)
        covered += interval.low <= 0.3 <= interval.high
    assert 0.90 <= covered / 300 <= 0.985


def test_pairing_removes_what_problems_have_in_common():
    generator = torch.Generator().manual_seed(1)
    ease = torch.rand(500, generator=generator)
    treated = ease + 0.02 + 0.01 * torch.randn(500, generator=generator)
    interval = paired_interval(treated, ease)
    assert interval.above_zero
    assert interval.high - interval.low < 0.005
    alone = mean_interval(treated)
    assert alone.high - alone.low > 0.04
    assert paired_interval(ease, treated).below_zero


def test_the_same_seed_gives_the_same_interval_and_an_equal_pair_gives_zero():
    x = torch.rand(50)
    assert mean_interval(x, seed=3) == mean_interval(x, seed=3)
    assert tuple(paired_interval(x, x)) == (0.0, 0.0, 0.0)


def test_unusable_samples_are_refused():
    with pytest.raises(ValueError, match="values has shape"):
        mean_interval(torch.zeros(0))
    with pytest.raises(ValueError, match="not paired"):
        paired_interval(torch.zeros(3), torch.zeros(4))
    with pytest.raises(ValueError, match=r"level is 1\.5"):
        mean_interval(torch.zeros(3), level=1.5)
