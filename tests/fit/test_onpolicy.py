"""Fitting on policy, and going on after a kill."""

import pytest

import dprm
from dprm.fit import OnPolicy
from tests.toy_host import ToyHost

HOST = ToyHost()
FIT = OnPolicy(rounds=8, prompts=4, samples=8, phases=4, beta=2.0, ready=8)


def test_the_fitted_policy_leaves_the_wrong_order(tmp_path):
    from dprm.evaluate.compare import compare

    policy = FIT.fit(HOST, HOST.problems("fit", 16), tmp_path / "p.dprm")
    orders = {"confidence": dprm.Order(), "dprm": dprm.Order.from_policy(policy, rule="top_m")}
    card, _ = compare(HOST, HOST.problems("test", 30), orders)
    assert card.arms["confidence"].mean == 0.0
    assert card.arms["dprm"].mean == 1.0
    assert policy.baseline == "prompt"
    assert policy.notes["rollouts"] == str(FIT.trajectories)
    assert int(policy.notes["calls"]) == 4 * FIT.trajectories


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    problems = HOST.problems("fit", 16)
    whole = FIT.fit(HOST, problems, tmp_path / "whole.dprm")

    def kill(done, reward):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FIT.fit(HOST, problems, tmp_path / "cut.dprm", kill)
    assert dprm.Policy.load(tmp_path / "cut.dprm").step == 3
    rounds = []
    again = FIT.fit(HOST, problems, tmp_path / "cut.dprm", lambda done, reward: rounds.append(done))
    assert rounds == [4, 5, 6, 7, 8]
    assert again.digest == whole.digest


def test_another_fit_is_not_overwritten(tmp_path):
    FIT.fit(HOST, HOST.problems("fit", 16), tmp_path / "p.dprm")
    before = (tmp_path / "p.dprm").read_bytes()
    with pytest.raises(ValueError, match="is of another fit"):
        OnPolicy(rounds=2, seed=5).fit(HOST, HOST.problems("fit", 16), tmp_path / "p.dprm")
    assert (tmp_path / "p.dprm").read_bytes() == before
    with pytest.raises(ValueError, match="problems is empty"):
        FIT.fit(HOST, HOST.problems("fit", 0), tmp_path / "q.dprm")
