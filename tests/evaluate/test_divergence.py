"""First divergence: one canvas, two decisions."""

import pytest
import torch

import dprm
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.evaluate.divergence import divergence
from tests.evaluate.test_diagnostics import rollout
from tests.toy_host import ToyHost

# Both reveal position 0 first; then one takes the sure position 1, the other the doubtful position 3.
CONTROL = rollout([[1, 2, 3, 4]], [[1, 2, 3, 4]], [[0.9, 0.8, 0.7, 0.6]])
OTHER = rollout([[1, 5, 3, 4]], [[1, 3, 4, 2]], [[0.9, 0.6, 0.7, 0.3]])


def told(run=OTHER, control=CONTROL, rewards=1.0, **more):
    column = torch.full((1, len(run)), rewards)
    return divergence([run], [control], column, torch.zeros_like(column), **more)


def test_what_was_given_up_and_what_was_got():
    facts = told()
    assert facts["parted"] == 1.0
    assert facts["same_canvas"] == 1.0
    assert facts["step"] == 0.25
    assert facts["confidence"]["mean"] == pytest.approx(0.3 - 0.8, abs=1e-6)
    assert facts["moved"]["mean"] == 2.0
    assert facts["reward"]["mean"] == 1.0
    assert "value" not in facts


def test_values_are_those_of_the_two_cells():
    order = dprm.Order(phases=1, bins=10, ready=1, baseline="none")
    stats = dprm.Stats(order.cells)
    stats.add(torch.tensor([3, 8]), torch.tensor([1.0, 0.25]))
    order.merge(stats)
    assert told(order=order)["value"]["mean"] == pytest.approx(0.75, abs=1e-6)


def test_orders_that_never_part_have_nothing_to_compare():
    assert told(CONTROL) == {"parted": 0.0}


def test_a_canvas_that_was_not_the_same_is_noticed():
    drawn = rollout([[7, 5, 3, 4]], [[1, 3, 4, 2]], [[0.9, 0.6, 0.7, 0.3]])
    assert told(drawn)["same_canvas"] == 0.0


def test_a_comparison_says_where_every_arm_parts():
    host = ToyHost()
    card = compare(host, host.problems("test", 40), arms_of(host, ("random", "entropy"))).card
    assert "divergence" not in card.arms["confidence"].diagnostics
    facts = card.arms["random"].diagnostics["divergence"]
    assert 0 < facts["parted"] < 1
    assert facts["same_canvas"] == 1.0
    assert facts["reward"]["mean"] * facts["parted"] == pytest.approx(card.arms["random"].delta, abs=1e-4)
