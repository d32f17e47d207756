"""Several benefits, one reward."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from tests.draws import seeds

weights = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4).filter(lambda w: sum(w) > 0.1)


def test_weighted_sum_and_smooth_tchebycheff_follow_their_formulas():
    y, preference = torch.tensor([[0.2, 0.9], [1.0, 0.0]]), [0.25, 0.75]
    reward, reward_range = dprm.scalarize(y, preference)
    assert reward.tolist() == pytest.approx([0.25 * 0.2 + 0.75 * 0.9, 0.25])
    assert reward_range == (0.0, 1.0)
    reward, _ = dprm.scalarize(y, preference, kind="tchebycheff", mu=0.1, rho=0.2)
    for row in range(2):
        terms = [math.exp(w * (1 - float(v)) / 0.1) for w, v in zip(preference, y[row], strict=True)]
        mean = sum(w * float(v) for w, v in zip(preference, y[row], strict=True))
        assert reward[row].item() == pytest.approx(1 - 0.1 * math.log(sum(terms)) + 0.2 * mean)


@given(seed=seeds, raw=weights, kind=st.sampled_from(["weighted", "tchebycheff"]), mu=st.floats(0.001, 2.0))
def test_the_range_is_true_and_tight_and_the_reward_rises_in_every_benefit(seed, raw, kind, mu):
    preference = [w / sum(raw) for w in raw]
    generator = torch.Generator().manual_seed(seed)
    y = torch.rand(50, len(raw), generator=generator)
    reward, (low, high) = dprm.scalarize(y, preference, kind=kind, mu=mu)
    assert (reward >= low).all()
    assert (reward <= high).all()
    ends, _ = dprm.scalarize(torch.stack([torch.zeros(len(raw)), torch.ones(len(raw))]), preference, kind=kind, mu=mu)
    assert ends.tolist() == pytest.approx([low, high])
    more, _ = dprm.scalarize((y + 0.1).clamp(max=1), preference, kind=kind, mu=mu)
    assert (more >= reward - 1e-12).all()
    dprm.Order(reward_range=(low, high)).stats  # noqa: B018  An Order accepts the range as it is.


def test_small_smoothing_approaches_the_largest_weighted_shortfall():
    y, preference = torch.tensor([[0.3, 0.8]]), [0.5, 0.5]
    reward, _ = dprm.scalarize(y, preference, kind="tchebycheff", mu=1e-4, rho=0.0)
    assert reward.item() == pytest.approx(1 - 0.5 * 0.7, abs=1e-3)


@pytest.mark.parametrize(
    ("benefits", "preference", "options", "message"),
    [
        ([[0.2, 1.2]], [0.5, 0.5], {}, r"benefits\[row 0, position 1\] is 1.2"),
        ([[0.2, float("nan")]], [0.5, 0.5], {}, r"benefits\[row 0, position 1\] is nan"),
        ([[0.2, 0.2]], [0.5, 0.6], {}, "weights sum to 1.1"),
        ([[0.2, 0.2]], [-0.5, 1.5], {}, r"weights\[0\] is -0.5"),
        ([[0.2, 0.2]], [1.0], {}, "weights has 1 entries for 2 benefits"),
        ([0.2, 0.2], [0.5, 0.5], {}, "benefits has shape"),
        ([[0.2]], [1.0], {"kind": "product"}, "kind is 'product'"),
        ([[0.2]], [1.0], {"mu": 0.0}, "mu is 0.0"),
        ([[0.2]], [1.0], {"rho": -1.0}, "rho is -1.0"),
    ],
)
def test_bad_preferences_are_refused(benefits, preference, options, message):
    with pytest.raises(ValueError, match=message):
        dprm.scalarize(torch.tensor(benefits), preference, **options)
