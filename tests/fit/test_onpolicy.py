"""Fitting on policy."""

import pytest

import dprm
from dprm.fit import OnPolicy, fit
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from tests.toy_host import ToyHost

HOST = ToyHost()
SETTING = OnPolicy(prompts=4, samples=8, phases=4, beta=2.0, gate=(0, 0, 8))
# The first few decodings say what an answer costs; eight rounds of 4 × 8 answers of four calls follow.
CALLS = 8 * 4 + 8 * 4 * 8 * 4


def test_the_fitted_policy_leaves_the_wrong_order():
    policy = fit(SETTING, HOST, calls=CALLS).policy
    ways = {"host": Decode(), "dprm": Decode(dprm.Order.from_policy(policy, rule="top_m"))}
    rollouts = decoded(HOST, HOST.problems("test", 30), ways)
    assert rollouts["host"].scores.mean() == 0.0
    assert rollouts["dprm"].scores.mean() == 1.0
    assert policy.baseline == "prompt"
    assert policy.step == 8
    assert policy.notes["rollouts"] == str(8 + 8 * 4 * 8)
    assert policy.notes["calls"] == str(CALLS)


@pytest.mark.parametrize("baseline", ["none", "global", "prompt"])
def test_the_baseline_is_that_of_the_setting(baseline):
    assert fit(OnPolicy(prompts=4, baseline=baseline), HOST, calls=200).policy.baseline == baseline


def test_the_gate_warms_up_round_by_round():
    setting = OnPolicy(prompts=4, samples=8, gate=(2, 6, 8), warm_signal="random")
    policy = fit(setting, HOST, calls=CALLS).policy
    assert (policy.gate.warm, policy.gate.switch, policy.gate.ready) == (2, 6, 8)
    assert policy.warm_signal == {"name": "random"}


def test_few_calls_make_a_smaller_round():
    policy = fit(OnPolicy(prompts=32, samples=4), HOST, calls=100).policy
    assert policy.step == 1
    assert int(policy.notes["calls"]) <= 100
