"""Branching: where it goes, what it compares, and what it costs."""

import math

import pytest
import torch

import dprm
from dprm.decode.guards import HoldBack
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.fit.leaning import Leaning
from dprm.host.host import Problems
from dprm.order.basis import LEFT
from dprm.order.head import Head, HeadShape
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


def test_a_branch_differs_from_its_native_decoding_in_one_choice():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 8), dprm.Order())
    rows = torch.arange(len(branches))
    assert branches.sight.candidates[rows, branches.native].all()
    assert branches.sight.candidates.gather(1, branches.alternative)[branches.kept].all()
    assert (branches.alternative != branches.native.unsqueeze(1))[branches.kept].all()
    # Confidence earns nothing here, so an alternative can only gain, and some do.
    assert branches.gain[branches.kept].min() == 0
    assert branches.gain[branches.kept].max() == 1
    assert branches.cost.rollouts == 8
    assert branches.cost.branches == int(branches.kept.sum())


def test_branches_do_not_depend_on_the_batch():
    problems = HOST.problems("fit", 9)
    whole = BRANCHING.collect(HOST, problems, dprm.Order())
    few = Branching(states=3, alternatives=3, temper=0.0, rows=4).collect(HOST, problems, dprm.Order())
    for name in ("group", "native", "alternative", "kept", "gain"):
        assert torch.equal(getattr(whole, name), getattr(few, name))
    assert whole.cost == few.cost


@pytest.mark.parametrize("width", [1, 2])
def test_a_branch_that_comes_back_is_not_continued(monkeypatch, width):
    setting = Branching(states=3, alternatives=3, temper=0.0, width=width)
    problems = HOST.problems("fit", 20)
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    monkeypatch.setattr("dprm.fit.branching._LOOK", 1)
    short = setting.collect(HOST, problems, dprm.Order())
    monkeypatch.setattr("dprm.fit.branching._LOOK", 100)
    whole = setting.collect(HOST, problems, dprm.Order())
    assert torch.equal(short.gain, whole.gain)
    assert whole.gain.any()
    assert whole.cost.rejoined == 0
    if width == 1:
        assert 0 < short.cost.rejoined < short.cost.branches
        assert short.cost.calls < whole.cost.calls


class Certain(ToyHost):
    """The four bits of the toy, and then eight positions that are certain from the start."""

    def denoiser(self):
        model, sure = super().denoiser(), torch.tensor([9.0, 0.0])
        return lambda tokens: torch.cat([model(tokens[:, :4]), sure.expand(len(tokens), 8, 2)], dim=1)

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return Problems(torch.full((count, 12), self.mask_id), posed.key, posed.facts)

    def reward(self, problems, tokens):
        return super().reward(problems, tokens[:, :4])


def test_what_is_certain_is_revealed_together_and_changes_no_difference(monkeypatch):
    host = Certain()
    # Far behind: the unsure four come first, and what is certain would take a step each.
    order = dprm.Order(signal=lambda reading: 1.0 - 0.9 * (reading.confidence > 0.99).float())
    problems, setting = host.problems("fit", 20), Branching(states=3, alternatives=3, temper=0.0, width=1)
    quick = setting.collect(host, problems, order)
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    slow = setting.collect(host, problems, order)
    assert torch.equal(quick.gain, slow.gain)
    assert quick.gain.any()
    native = 12 * len(problems)
    assert (quick.cost.calls - native) < 0.5 * (slow.cost.calls - native)


def test_what_a_host_holds_back_is_not_revealed_early(monkeypatch):
    host = Certain()
    host.guard = HoldBack((0,))
    problems, setting = host.problems("fit", 6), Branching(states=2, alternatives=2, width=1)
    guarded = setting.collect(host, problems, dprm.Order())
    assert guarded.kept.any()
    assert (guarded.sight.tokens.gather(1, guarded.alternative) != 0)[guarded.kept].all()
    monkeypatch.setattr("dprm.fit.branching._TOGETHER", 1.0)
    assert setting.collect(host, problems, dprm.Order()).cost == guarded.cost


def test_two_certain_positions_are_not_compared():
    class Sure(ToyHost):
        def denoiser(self):
            return lambda tokens: torch.tensor([20.0, 0.0, 0.0]).expand(*tokens.shape, 3)

    branches = BRANCHING.collect(Sure(), HOST.problems("fit", 4), dprm.Order())
    assert not branches.kept.any()
    assert branches.cost.branches == 0


def test_positions_far_behind_are_tried_too():
    head = Head(HeadShape(), support=1000).requires_grad_(False)
    head.linear.weight.copy_(Leaning(LEFT, -1000.0).weight(head.shape))
    order = dprm.Order(head=head, guidance=1.0, signal="odds")
    branches = Branching(states=4, alternatives=1, temper=0.3).collect(HOST, HOST.problems("fit", 400), order)
    first = branches.sight.candidates.all(1)
    assert (branches.native[first] == 0).all()
    # The second is 250 log odds ahead of the third; those behind it count as ten behind: e⁻³ : e⁻³ : 1.
    others = float((branches.alternative[first, 0] > 1).float().mean())
    assert others == pytest.approx(2 / (2 + math.exp(3.0)), abs=0.05)


class SureThenUnsure(ToyHost):
    """Eight positions, four of them certain, whatever else is revealed."""

    def denoiser(self):
        confidence = torch.tensor([1 - 1e-5] * 4 + [0.6] * 4)
        logits = torch.stack([confidence.log(), (1 - confidence).log(), torch.full((8,), -30.0)], dim=1)
        return lambda tokens: logits.expand(*tokens.shape, 3)

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return Problems(torch.full((count, 8), self.mask_id), posed.key, posed.facts)

    def reward(self, problems, tokens):
        return torch.zeros(len(tokens))


def test_sure_choices_are_looked_into_where_several_positions_are_revealed():
    host, order = SureThenUnsure(), dprm.Order()
    problems = host.problems("fit", 64)

    def early(even, width):
        found = Branching(states=1, even=even, width=width).collect(host, problems, order)
        return int((found.sight.progress < 0.5).sum())

    assert early(0.0, 1) == early(0.5, 1) == 0
    assert early(0.0, 2) == 0
    assert 0 < early(0.5, 2) < early(1.0, 2) < 64


def test_two_positions_a_step_keep_the_other_one():
    branches = Branching(states=2, alternatives=4, width=2).collect(HOST, HOST.problems("fit", 6), dprm.Order())
    assert (branches.sight.budget == 2).all()
    assert (branches.sight.candidates.sum(1) > 2).all()


def test_branches_survive_a_file(tmp_path):
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 4), dprm.Order())
    branches.save(tmp_path / "b", {"host": "toy"})
    again, header = Branches.load(tmp_path / "b")
    assert header["host"] == "toy"
    assert again.cost == branches.cost
    assert torch.equal(again.sight.confidence, branches.sight.confidence)
    assert torch.equal(again.gain, branches.gain)


def test_held_out_problems_are_whole():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 40), dprm.Order())
    seen = []
    for learned, judged in branches.folds(3):
        assert len(learned) + len(judged) == len(branches)
        assert not set(learned.group.tolist()) & set(judged.group.tolist())
        assert 0 < len(judged) < len(learned)
        seen += judged.group.tolist()
    assert sorted(seen) == sorted(branches.group.tolist())
