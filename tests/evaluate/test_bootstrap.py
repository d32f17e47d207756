"""Intervals."""

import pytest
import torch

from dprm.evaluate.bootstrap import (
    independent_interval,
    mean_interval,
    paired_interval,
    resampled_means,
    seeds_interval,
    student,
    student_interval,
)


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
    assert paired_interval(ease, treated).high < 0


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


def test_the_average_over_seeds_is_as_uncertain_as_problems_that_all_seeds_share():
    # What makes a problem easy helps every seed: three seeds are worth little more than one.
    generator = torch.Generator().manual_seed(4)
    covered = resampled_apart = 0
    for trial in range(200):
        shared = torch.randn(150, generator=generator)
        treated = shared + 0.3 * torch.randn(3, 150, generator=generator)
        interval, _ = seeds_interval(treated, torch.zeros(150), resamples=400, seed=trial)
        covered += interval.low <= 0.0 <= interval.high
        pooled = mean_interval(treated.flatten(), resamples=400, seed=trial)
        resampled_apart += pooled.low <= 0.0 <= pooled.high
    assert 0.90 <= covered / 200 <= 0.99
    assert resampled_apart / 200 < 0.85


def test_the_spread_between_seeds_is_that_of_their_means():
    values = torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 6.0]])
    interval, apart = seeds_interval(values, torch.zeros(2))
    assert interval.estimate == 2.0
    assert apart == pytest.approx(float(torch.tensor([0.5, 1.5, 4.0]).std()))
    with pytest.raises(ValueError, match=r"expected \[seeds, problems\]"):
        seeds_interval(torch.zeros(3), torch.zeros(3))


def test_groups_are_drawn_whole():
    generator = torch.Generator().manual_seed(5)
    group = torch.arange(100) // 10
    values = torch.randn(10, generator=generator)[group]
    together = mean_interval(values, seed=1, groups=group)
    alone = mean_interval(values, seed=1)
    assert together.high - together.low > 2.5 * (alone.high - alone.low)
    assert mean_interval(values, seed=1, groups=torch.arange(100)).low == alone.low
    with pytest.raises(ValueError, match="groups holds one group only"):
        mean_interval(values, groups=torch.zeros(100))


def test_a_few_numbers_have_the_interval_of_student():
    mean, low, high = student_interval(torch.tensor([1.0, 2.0, 3.0]))
    assert (mean, high - mean) == (2.0, pytest.approx(4.3027 / 3**0.5))
    assert low == pytest.approx(2.0 - 4.3027 / 3**0.5)
    assert student(30) == pytest.approx(2.0423, abs=2e-4)


def test_resampled_means_of_terms_have_the_spread_of_a_mean_and_draw_their_columns_together():
    terms = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)).double()
    terms = torch.cat([terms, terms.sum(1, keepdim=True)], 1)
    means = resampled_means(terms, 4000)
    assert means.shape == (4000, 3)
    torch.testing.assert_close(means.mean(0), terms.mean(0), atol=0.01, rtol=0)
    torch.testing.assert_close(means.std(0), terms.std(0) / 200**0.5, atol=0.005, rtol=0)
    torch.testing.assert_close(means[:, 0] + means[:, 1], means[:, 2])
    assert torch.equal(resampled_means(terms[:, :1], 4000), means[:, :1])
    assert not torch.equal(resampled_means(terms, 4000, seed=1), means)
