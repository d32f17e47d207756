"""A table while it is learned."""

import math

import pytest
import torch

from dprm.fit import Branched, Branching, OnPolicy, fit
from dprm.fit.tracking import Tracking
from dprm.order import Stats
from dprm.order.values import radius
from tests.toy_host import ToyHost

HOST = ToyHost()


def test_radius_shrinks_and_what_moves_drifts():
    early, late, moved = Stats(2), Stats(2), Stats(2)
    early.add(torch.tensor([0] * 20 + [1] * 2), torch.tensor([0.0, 1.0] * 10 + [0.5] * 2))
    late.add(torch.tensor([0] * 400 + [1] * 200), torch.tensor([0.0, 1.0] * 200 + [0.5] * 200))
    moved.add(torch.tensor([0] * 20), torch.ones(20))
    found = Tracking().then(None, early, ready=20, horizon=2).then(early, late, ready=20, horizon=2)
    assert found.events == (22, 600)
    assert found.ready == pytest.approx((20 / 22, 1.0), abs=1e-4)
    assert found.radius[1] < found.radius[0] / 3
    assert found.drift == pytest.approx((0.0, 0.0), abs=1e-9)
    # Nearly all of its events lie in one cell; the other, hardly seen, does not count.
    rare = Stats(2)
    rare.add(torch.tensor([0] * 400 + [1] * 2), torch.ones(402))
    assert Tracking().then(None, rare, 20, 1).radius[0] == pytest.approx(float(radius(rare)[0]), rel=1e-4)
    assert found.then(early, moved, 20, 2).drift[2] == pytest.approx(math.e - (1 + math.e) / 2, abs=1e-4)
    assert Tracking.of_notes({"tracking": found.note()}) == found
    assert found.then(late, Stats(2), ready=20, horizon=2) == found


def test_a_fit_notes_every_round():
    setting = OnPolicy(prompts=4, samples=8, phases=4, beta=2.0, gate=(0, 0, 8))
    seen = Tracking.of_notes(fit(setting, HOST, calls=32 + 5 * 4 * 8 * 4).policy.notes)
    assert seen.events == tuple(4.0 * 32 * (turn + 1) for turn in range(5))
    assert list(seen.radius) == sorted(seen.radius, reverse=True)


def test_a_branched_table_is_tracked_too():
    setting = Branched(Branching(states=3, alternatives=3, temper=0.0), rounds=2, phases=4)
    policy = fit(setting, HOST, calls=1000).policy
    assert len(Tracking.of_notes(policy.notes)) == 2
    assert Tracking.of_notes(policy.notes).events[1] == float(policy.stats.count.sum())
