"""The choice on the select split."""

import pytest
import torch

from dprm.evaluate.choosing import choose, problems_needed


def rewards(gain, count=4000, seed=0):
    """Solved or not, paired: the control, and a treatment that wins `gain` of the problems."""
    control = (torch.rand(count, generator=torch.Generator().manual_seed(seed)) < 0.5).float()
    treated = control.clone()
    lost = (control == 0).nonzero().squeeze(1)[: round(gain * count)]
    treated[lost] = 1.0
    return treated, control


def test_the_largest_of_those_that_gain_is_taken():
    best, control = rewards(0.05)
    some, _ = rewards(0.03)
    found = choose({"none": control, "some": some, "best": best}, control)
    assert found.setting == "best"
    assert found.intervals["best"].estimate == pytest.approx(0.05)
    assert not found.intervals["none"].above_zero


def test_nothing_is_taken_where_the_best_mean_is_chance():
    generator = torch.Generator().manual_seed(1)
    taken = 0
    for study in range(100):
        control = (torch.rand(500, generator=generator) < 0.5).float()
        noise = {str(index): (torch.rand(500, generator=generator) < 0.5).float() for index in range(8)}
        taken += choose(noise, control, resamples=1000, seed=study).setting is not None
    assert taken <= 7


def test_more_settings_need_more_evidence():
    some, control = rewards(0.002)
    assert choose({"one": some}, control).setting == "one"
    assert choose({str(index): some for index in range(40)}, control).setting is None
    with pytest.raises(ValueError, match="rewards is empty"):
        choose({}, control)


def test_the_number_of_problems_is_the_one_that_sees_the_gain():
    needed = problems_needed(0.03, 0.25 - 0.03**2)
    assert needed == pytest.approx((1.96 + 0.8416) ** 2 * 0.2491 / 0.0009, rel=1e-3)
    generator = torch.Generator().manual_seed(2)
    means = []
    for _ in range(400):
        u = torch.rand(needed, generator=generator)
        means.append(float(((u < 0.14).double() - (u > 0.89).double()).mean()))
    error = (0.2491 / needed) ** 0.5
    assert sum(mean > 1.96 * error for mean in means) / 400 == pytest.approx(0.8, abs=0.06)
    assert problems_needed(0.03, 0.2491, tries=4) > needed
    with pytest.raises(ValueError, match="gain is 0"):
        problems_needed(0.0, 0.2)
