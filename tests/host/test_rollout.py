"""Rolling a host out."""

import torch

import dprm
from dprm.host.rollout import Rollout, batches
from tests.toy_host import ToyHost


def rolled(order, count=20, rows=7, seed=0, **how):
    host = ToyHost()
    parts = [part for _, part in batches(host, host.problems("test", count), order, rows=rows, seed=seed, **how)]
    return Rollout.joined(parts)


def test_a_problem_fares_the_same_in_batches_of_any_size():
    order = dprm.Order(signal="random")
    small, large = rolled(order, rows=3), rolled(order, rows=20)
    assert torch.equal(small.tokens, large.tokens)
    assert torch.equal(small.step_map, large.step_map)
    assert not torch.equal(small.step_map, rolled(order, seed=1).step_map)


def test_a_rollout_counts_calls_and_decisions():
    rollout = rolled(dprm.Order())
    assert rollout.nfe.tolist() == [4] * 20
    assert rollout.decisions.tolist() == rollout.picks.tolist() == [4] * 20
    assert rollout.changed.sum() == rollout.ready.sum() == 0
    assert rollout.reward.sum() == 0
    assert rolled(dprm.Order(), budget=2).nfe.tolist() == [2] * 20


def test_problems_are_named_by_what_they_are_not_by_their_order():
    problems = ToyHost().problems("test", 10)
    turned = type(problems)(problems.canvas.flip(0), problems.key.flip(0), problems.facts[::-1])
    assert problems.digest == turned.digest
    assert problems.digest != ToyHost().problems("fit", 10).digest
    assert len(problems[3:5]) == 2
