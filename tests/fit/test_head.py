"""The head that is fitted on branches, round after round."""

import pytest
import torch

import dprm
from dprm.evaluate.compare import compare
from dprm.fit.branching import Branching
from dprm.fit.head import HeadFit, cautious
from dprm.fit.teaching import teach
from dprm.order.basis import echoes, names
from dprm.order.head import HeadShape
from dprm.order.pace import TURNS
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


def solved(policy, problems=30):
    orders = {"confidence": dprm.Order(), "dprm": dprm.Order.from_policy(policy)}
    card, _ = compare(HOST, HOST.problems("test", problems), orders)
    return card.arms["confidence"].mean, card.arms["dprm"].mean


def head_fit(**others):
    return HeadFit(BRANCHING, rounds=2, trials=8, strengths=(3.0, 30.0), **others)


def test_the_head_leaves_the_wrong_order_and_survives_its_file(tmp_path):
    policy = head_fit().fit(HOST, HOST.problems("fit", 72), tmp_path / "p.dprm")
    assert solved(policy) == (0.0, 1.0)
    loaded = dprm.Policy.load(tmp_path / "p.dprm")
    assert loaded.digest == policy.digest
    assert loaded.header["values"] == "head"
    assert solved(loaded) == (0.0, 1.0)


def test_what_the_trials_chose_is_one_of_the_strengths_not_a_third_setting(tmp_path, monkeypatch):
    monkeypatch.setattr("dprm.fit.head.teach", lambda *given: teach(*given)._replace(spread=0.010224))
    fit = head_fit(worths=())
    policy = fit.fit(HOST, HOST.problems("fit", 72), tmp_path / "p.dprm")
    assert len(fit.guidances(policy)) == 2
    assert policy.guidance in fit.guidances(policy)


def test_a_killed_head_fit_goes_on_to_the_same_policy(tmp_path):
    problems = HOST.problems("fit", 40)
    whole = head_fit().fit(HOST, problems, tmp_path / "whole.dprm")

    def kill(done, explained):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        head_fit().fit(HOST, problems, tmp_path / "cut.dprm", kill)
    again = head_fit().fit(HOST, problems, tmp_path / "cut.dprm")
    assert again.digest == whole.digest
    assert again.notes == whole.notes
    with pytest.raises(ValueError, match="another fit"):
        head_fit(signal="confidence").fit(HOST, problems, tmp_path / "cut.dprm")


def test_a_head_fit_killed_while_it_branches_goes_on_to_the_same_policy(tmp_path, monkeypatch):
    problems = HOST.problems("fit", 40)
    whole = head_fit().fit(HOST, problems, tmp_path / "whole.dprm")
    collect, turns = Branching.collect, []

    def cut(self, *args):
        turns.append(self.seed)
        if len(turns) == 2:
            raise KeyboardInterrupt
        return collect(self, *args)

    monkeypatch.setattr(Branching, "collect", cut)
    with pytest.raises(KeyboardInterrupt):
        head_fit().fit(HOST, problems, tmp_path / "cut.dprm")
    again = head_fit().fit(HOST, problems, tmp_path / "cut.dprm")
    assert (again.digest, again.notes) == (whole.digest, whole.notes)
    assert len(turns) == 3  # The round that was finished was not made again, nor is a whole fit.
    assert head_fit().fit(HOST, problems, tmp_path / "cut.dprm").digest == whole.digest
    assert len(turns) == 3


def test_the_strength_between_rounds_is_the_smallest_that_is_about_as_good():
    base = (torch.arange(100) < 20).double()

    def solving(first, last):
        return base + ((torch.arange(100) >= first) & (torch.arange(100) < last))

    assert cautious({0.0: base, 1.0: solving(20, 50), 3.0: solving(35, 66), 9.0: solving(20, 25)}) == 1.0
    assert cautious({0.0: base, 1.0: solving(20, 25), 3.0: solving(30, 90)}) == 3.0
    assert cautious({0.0: base, 1.0: base}) == 1.0  # It changes nothing here; its branches may tell more.
    assert cautious({0.0: base, 1.0: base * 0.0}) == 0.0
    assert cautious({0.0: base}) == 0.0


def test_a_head_does_not_repeat_what_the_host_takes():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 60), dprm.Order())
    branches.gain -= 0.3
    named = names(1, 4)
    weight = teach(branches, HeadShape()).head.linear.weight.squeeze(0)
    assert weight.any()
    alone = [name for name, value in zip(named, weight.tolist(), strict=True) if value != 0]
    assert not {"host's choice", "turn below 0.9", "first below 0.99", "turn below 0.9 × progress"} & set(alone)
    # With two positions a step turns are worth something.
    assert sum(echoes(1, 4, width=2)) == 1
    assert sum(echoes(1, 4, width=1)) == 1 + 4 * len(TURNS)


def test_a_head_that_was_taught_nothing_is_the_hosts_order():
    branches = BRANCHING.collect(HOST, HOST.problems("fit", 20), dprm.Order())
    branches.gain.zero_()
    taught = teach(branches, HeadShape())
    assert taught.explained == 0.0
    assert not taught.head.linear.weight.any()
    reading = dprm.read(torch.randn(5, 4, 2))
    order = dprm.Order(head=taught.head, guidance=100.0, signal="odds")
    candidates = torch.ones(5, 4, dtype=torch.bool)
    chosen = order.select(reading, candidates, 2, 0.0).mask
    assert torch.equal(chosen, dprm.Order().select(reading, candidates, 2, 0.0).mask)
