"""Walking known answers: what is written is the truth, and cross-entropies are those of the chain."""

import math
from typing import ClassVar

import pytest
import torch

import dprm
from dprm.evaluate.forced import Forced, forced, probed
from dprm.order.signals import LeftToRight
from tests.toy_host import ToyHost


class AnsweredHost(ToyHost):
    """Every answer is 1111."""

    def answered(self, split, count, seed=0):
        problems = self.problems(split, count, seed)
        return problems, torch.ones_like(problems.canvas)


HOST = AnsweredHost()
BACKWARDS = dprm.Order(signal=LeftToRight(slope=-1.0))


def walk(order=None, count=3, host=HOST):
    problems, answers = host.answered("select", count)
    return forced(host, problems, answers, order)


def test_the_truth_is_written_and_its_cross_entropy_is_that_of_the_chain():
    # Confidence reveals position 0 first, where the chain gives 1 the probability .30; 1111 alone has a 1 there.
    found = walk()
    assert found.early_count.tolist() == [2.0] * 3
    assert found.early.tolist() == pytest.approx([-math.log(0.30)] * 3, abs=1e-5)
    # From the right the first two are both 1 with probability .30 + .14; the rest of the doubt comes later.
    other = walk(BACKWARDS)
    assert other.early.tolist() == pytest.approx([-math.log(0.44)] * 3, abs=1e-5)
    assert other.entropy.sum().item() == pytest.approx(found.entropy.sum().item(), abs=1e-4)


def test_every_reveal_is_counted_once_early_or_late():
    for signal in ("confidence", "random", "left_to_right"):
        found = walk(dprm.Order(signal=signal))
        assert (found.early_count + found.late_count).tolist() == [4.0] * 3
        assert float(found.count.sum()) == 12


def test_a_problem_does_not_depend_on_the_batch_it_is_in():
    problems, answers = HOST.answered("select", 5)
    order = dprm.Order(signal="random")
    whole = forced(HOST, problems, answers, order)
    alone = forced(HOST, problems[3:4], answers[3:4], order)
    assert torch.equal(whole.early[3:4], alone.early)
    parts = probed(HOST, problems, answers, {"random": order}, rows=2)
    assert parts["random"]["early"]["mean"] == pytest.approx(float((whole.early / whole.early_count).mean()), abs=1e-5)


def test_rows_of_different_length_end_by_themselves():
    problems, answers = HOST.answered("select", 3)
    problems.canvas[1, :3] = 1
    found = forced(HOST, problems, answers)
    assert (found.early_count + found.late_count).tolist() == [4.0, 1.0, 4.0]


def test_the_end_of_the_text_does_not_count():
    class Ended(AnsweredHost):
        audit: ClassVar = {"eot": 1}

        def answered(self, split, count, seed=0):
            problems, answers = super().answered(split, count, seed)
            answers[:, 0] = 0
            return problems, answers

    found = walk(host=Ended())
    assert (found.early_count + found.late_count).tolist() == [1.0] * 3


def test_relation_is_negative_where_sure_reveals_are_right():
    found = Forced.empty(1)
    yes = torch.ones(1, 2, dtype=torch.bool)
    found.add(torch.tensor([0]), yes, torch.tensor([[2.0, 0.1]]), torch.tensor([[0.1, 0.9]]), torch.tensor([0.0]))
    assert found.relation() == pytest.approx(-1.0)
    assert math.isnan(Forced.empty(1).relation())


def test_differences_are_to_the_first_order():
    problems, answers = HOST.answered("select", 4)
    found = probed(HOST, problems, answers, {"confidence": None, "least": BACKWARDS})
    assert "delta" not in found["confidence"]["early"]
    assert found["least"]["early"]["delta_high"] < 0


def test_answers_that_contradict_the_problem_are_refused():
    problems, answers = HOST.answered("select", 2)
    problems.canvas[0, 0] = 0
    with pytest.raises(ValueError, match="answers does not agree"):
        forced(HOST, problems, answers)
    with pytest.raises(ValueError, match="knows no answers"):
        ToyHost().answered("select", 2)
