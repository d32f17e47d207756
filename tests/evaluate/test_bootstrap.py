"""Intervals."""

import pytest
import torch

from dprm.evaluate.bootstrap import independent_interval, mean_interval, paired_interval, seeds_interval


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


def test_few_values_and_many_give_the_same_interval():
    generator = torch.Generator().manual_seed(2)
    coarse = (torch.rand(400, generator=generator) < 0.3).double()
    # The same sample, with values too many to be counted.
    fine = coarse + 1e-9 * torch.arange(400)
    one, other = mean_interval(coarse, seed=1), mean_interval(fine, seed=1)
    assert one.low == pytest.approx(other.low, abs=0.004)
    assert one.high == pytest.approx(other.high, abs=0.004)


def test_independent_samples_have_wider_intervals_than_pairs():
    generator = torch.Generator().manual_seed(3)
    ease = torch.rand(500, generator=generator)
    treated = ease + 0.02
    wide, narrow = independent_interval(treated, ease), paired_interval(treated, ease)
    assert wide.estimate == pytest.approx(narrow.estimate)
    expected = 2 * 1.96 * (2 * float(ease.var()) / 500) ** 0.5
    assert wide.high - wide.low == pytest.approx(expected, rel=0.1)
    assert narrow.high - narrow.low < 0.01
    assert independent_interval(torch.ones(30), torch.zeros(7)) == (1.0, 1.0, 1.0)


def test_seeds_are_analysed_before_they_are_averaged():
    generator = torch.Generator().manual_seed(4)
    values = torch.randn(3, 400, generator=generator) + torch.tensor([[0.0], [1.0], [2.0]])
    mean, single = seeds_interval(values)
    assert [interval.estimate for interval in single] == pytest.approx(values.double().mean(1).tolist())
    assert mean.estimate == pytest.approx(float(values.double().mean()))
    # Three independent seeds: the average is narrower by √3 than each, however far apart they are.
    assert (mean.high - mean.low) * 3**0.5 == pytest.approx(single[0].high - single[0].low, rel=0.15)
    with pytest.raises(ValueError, match=r"expected \[seeds, problems\]"):
        seeds_interval(torch.zeros(3))
