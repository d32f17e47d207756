"""The head that is fitted on branches, round after round."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode import Fixed
from dprm.fit import HeadFit, Run, fit
from dprm.fit.branching import Branching
from dprm.fit.head import STRENGTHS
from dprm.fit.teaching import teach
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.order.features import TURNS, echoes, names
from dprm.order.head import Head
from tests.toy_host import ToyHost

HOST = ToyHost()
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)
SETTING = HeadFit(BRANCHING, rounds=2)
CALLS = 1000


def solved(policy, guidance=None):
    ways = {"host": Decode(), "dprm": Decode(dprm.Order.from_policy(policy, guidance=guidance))}
    rollouts = decoded(HOST, HOST.problems("test", 30), ways)
    return tuple(float(rollout.scores.mean()) for rollout in rollouts.values())


def collected(problems, host=HOST):
    return BRANCHING.collect(host, host.problems("fit", problems), dprm.Order(), host.model())[0]


def test_the_head_leaves_the_wrong_order_and_survives_its_file(tmp_path):
    policy = fit(SETTING, HOST, calls=CALLS).policy
    assert solved(policy, guidance=30.0) == (0.0, 1.0)
    policy.save(tmp_path / "p.dprm")
    loaded = dprm.Policy.load(tmp_path / "p.dprm")
    assert loaded.digest == policy.digest
    assert loaded.header["values"] == "head"
    assert solved(loaded, guidance=30.0) == (0.0, 1.0)


def test_strengths_are_tried_of_a_head_that_says_something_and_of_no_other():
    policy = fit(SETTING, HOST, calls=CALLS).policy
    assert SETTING.strengths(policy) == STRENGTHS
    assert SETTING.strengths(replace(policy, head=Head.empty())) == ()


@pytest.mark.parametrize("width", [1, 2])
def test_a_head_may_correct_more_the_more_it_has_seen(monkeypatch, width):
    """After t rounds the branches are made under its order at t·m/2 log odds; no decoding is spent on trials."""
    guidances, branches = [], Run.branches

    def noted(self, order, problems, branching, turn):
        guidances.append(order.guidance)
        return branches(self, order, problems, branching, turn)

    monkeypatch.setattr(Run, "branches", noted)
    host = HOST.with_decoding(count=Fixed(width))
    policy = fit(replace(SETTING, rounds=3, worths=()), host, calls=CALLS).policy
    # The first round is made in two parts: a few problems tell what one costs.
    assert guidances == [0.0, 0.0, 0.5 * width, 1.0 * width]
    assert policy.guidance == 1.5 * width


def test_a_killed_head_fit_goes_on_to_the_same_policy(tmp_path):
    whole = fit(SETTING, HOST, calls=CALLS, folder=tmp_path / "whole")

    def kill(calls, what):
        if calls > 0.7 * CALLS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(SETTING, HOST, calls=CALLS, folder=tmp_path / "cut", on_progress=kill)
    again = fit(SETTING, HOST, calls=CALLS, folder=tmp_path / "cut")
    assert (again.policy.digest, again.policy.notes) == (whole.policy.digest, whole.policy.notes)
    assert (again.shuffled.digest, again.shuffled.notes) == (whole.shuffled.digest, whole.shuffled.notes)


def test_a_head_fit_killed_while_it_branches_makes_no_branch_twice(tmp_path, monkeypatch):
    # So that every batch is written down.
    monkeypatch.setattr("dprm.fit.run._SAVED_EVERY", -1.0)
    how = {"calls": CALLS, "rows": 63}
    whole = fit(SETTING, HOST, folder=tmp_path / "whole", **how)
    collect, batches = Branching.collect, []

    def cut(self, host, problems, *others):
        batches.append(problems.digest)
        if len(batches) == 3:
            raise KeyboardInterrupt
        return collect(self, host, problems, *others)

    monkeypatch.setattr(Branching, "collect", cut)
    with pytest.raises(KeyboardInterrupt):
        fit(SETTING, HOST, folder=tmp_path / "cut", **how)
    again = fit(SETTING, HOST, folder=tmp_path / "cut", **how)
    assert (again.policy.digest, again.policy.notes) == (whole.policy.digest, whole.policy.notes)
    assert len(batches) - 1 == len(set(batches)) > 3  # Only what was cut is made again.
    before = len(batches)
    assert fit(SETTING, HOST, folder=tmp_path / "cut", **how).policy.digest == whole.policy.digest
    assert len(batches) == before  # Nothing of a finished fit is.


def test_another_fit_in_the_same_folder_is_another_fit(tmp_path):
    other = replace(SETTING, signal="confidence")
    fit(SETTING, HOST, calls=CALLS, folder=tmp_path)
    shared, alone = fit(other, HOST, calls=CALLS, folder=tmp_path), fit(other, HOST, calls=CALLS)
    assert (shared.policy.digest, shared.policy.notes) == (alone.policy.digest, alone.policy.notes)
    assert shared.policy.digest != fit(SETTING, HOST, calls=CALLS, folder=tmp_path).policy.digest


def test_a_control_learns_from_the_same_numbers_without_their_meaning():
    fitted = fit(SETTING, HOST, calls=CALLS)
    assert fitted.shuffled.notes["control"] == "shuffled values"
    assert fitted.shuffled.notes["setting"] == fitted.policy.notes["setting"]
    assert fitted.shuffled.guidance == fitted.policy.guidance
    assert not torch.equal(fitted.shuffled.head.weight, fitted.policy.head.weight)
    assert solved(fitted.policy, guidance=30.0)[1] == 1.0
    assert solved(fitted.shuffled, guidance=30.0)[1] < 0.5


def test_a_head_does_not_repeat_what_the_host_takes():
    branches = collected(60)
    branches.scores = (branches.scores - 0.3).clamp(min=-1.0)
    named = names(1, 4)
    weight = teach(HOST, branches, reach=4).head.weight
    assert weight.any()
    speaking = {name for name, value in zip(named, weight.tolist(), strict=True) if value != 0}
    assert not {"host's choice", "turn below 0.9", "first below 0.99", "turn below 0.9 × progress"} & speaking
    # With two positions a step turns are worth something.
    assert sum(echoes(1, 4, width=2)) == 1
    assert sum(echoes(1, 4, width=1)) == 1 + 4 * len(TURNS)


def test_a_head_that_was_taught_nothing_is_the_hosts_order():
    branches = collected(20)
    branches.scores = branches.native_scores.unsqueeze(1).repeat(1, 3, 1)
    taught = teach(HOST, branches, reach=4)
    assert taught.explained == 0.0
    assert not taught.head.weight.any()
    reading = dprm.read(torch.randn(5, 4, 2))
    order = dprm.Order(head=taught.head, guidance=100.0, signal="odds")
    candidates = torch.ones(5, 4, dtype=torch.bool)
    chosen = order.select(reading, candidates, 2, 0.0).mask
    assert torch.equal(chosen, dprm.Order().select(reading, candidates, 2, 0.0).mask)


def test_where_there_is_no_choice_to_make_the_head_says_nothing():
    # All four positions in one step: no state leaves an alternative.
    fitted = fit(SETTING, HOST.with_decoding(count=Fixed(4)), calls=CALLS)
    assert not fitted.policy.head.weight.any()
    assert fitted.policy.notes["explained"] == "0.00000"
    assert SETTING.strengths(fitted.policy) == ()


def test_a_host_with_an_order_of_its_own_is_corrected_in_its_own_order():
    host = HOST.with_decoding(signal=dprm.Order(signal="entropy").signal)
    assert fit(SETTING, host, calls=CALLS).policy.signal == {"name": "entropy"}
    assert fit(SETTING, HOST, calls=CALLS).policy.signal == {"name": "odds"}


def test_a_head_has_unit_spread_so_that_guidance_is_log_odds():
    host = ToyHost()
    branches = collected(40)
    head = teach(host, branches, 4).head
    for scale in (1.0, 1000.0):
        paid = replace(branches, scores=scale * branches.scores, native_scores=scale * branches.native_scores)
        again = teach(host, paid, 4).head
        value = again(paid.sight)
        gaps = (value.gather(1, paid.alternative) - value.gather(1, paid.native.unsqueeze(1)))[paid.tried]
        assert float(gaps.square().mean().sqrt()) == pytest.approx(1.0, rel=1e-4)
        torch.testing.assert_close(again.weight, head.weight, rtol=1e-3, atol=1e-4)
