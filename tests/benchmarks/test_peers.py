"""Peers at equal model calls, on the toy host."""

import pytest
import torch

from benchmarks.peers.__main__ import LEARNERS, compared
from benchmarks.peers.entropy_bound import matched
from benchmarks.peers.policy_gradient import PolicyGradient, returned
from benchmarks.peers.stable_token import StableToken
from benchmarks.peers.within import branches_of, values_of, within_state
from dprm.decode import decode
from dprm.fit import HeadFit, fit
from dprm.order import Order
from tests.toy_host import CHAIN, ToyHost

HOST = ToyHost()


def test_a_path_earns_the_log_likelihood_of_what_is_still_to_come():
    result = decode(CHAIN.denoiser(), torch.full((1, 4), 2), Order(), mask_id=2, budget=1)
    row = torch.zeros(3, dtype=torch.int64)
    logs = result.trace.confidence[0].double().log()
    late = float((logs * (result.step_map[0] > 2)).sum())
    told = returned(result, row, torch.tensor([0, 2, 4])).tolist()
    assert told == pytest.approx([float(logs.sum()), late, 0.0], abs=1e-6)


def test_neither_likelihood_nor_stability_knows_of_the_reward():
    def worth_nothing(problems, tokens):
        return torch.zeros(len(tokens))

    blind = ToyHost()
    blind.judge = worth_nothing
    for method in (PolicyGradient(prompts=4, samples=8, decisions=4, path=True), StableToken()):
        told, untold = (fit(method, host, calls=1_000).policy.head.weight for host in (HOST, blind))
        assert torch.equal(told, untold)
    assert PolicyGradient(path=True).name == "path_likelihood"
    assert not fit(PolicyGradient(prompts=4, samples=8), blind, calls=1_000).policy.head.weight.any()


def test_a_bound_takes_no_more_calls_than_it_may():
    problems = HOST.problems("select", 6)
    bounded, spent = matched(HOST, problems, 3.0)
    rollout = bounded.answer(HOST, problems, 0, HOST.model())
    assert rollout.nfe.double().mean() <= 3.0
    assert spent > 0
    loose, _ = matched(HOST, problems, 1.0)
    assert loose.gamma > bounded.gamma


def test_within_state_r2_is_high_for_values_that_were_learned_from_gains_and_nothing_for_none():
    branches, cost = branches_of(HOST, HOST.problems("select", 12), rows=5)
    assert cost.calls > 0
    policy = fit(HeadFit(rounds=2), HOST, calls=2_000).policy
    assert values_of(policy, branches).shape == (len(branches), branches.alternative.shape[1] + 1)
    assert within_state(HOST, policy, branches) > 0.3
    empty = Order().policy()
    assert within_state(HOST, empty, branches) == 0.0


def test_a_card_has_every_method_with_every_seed_and_goes_on_after_a_kill(tmp_path):
    how = {"calls": 600, "seeds": 2, "select": 12, "limit": 16, "branched": 4, "rows": 16, "folder": tmp_path}
    methods = ["head", "stable token (TraceLock)"]
    card, outcomes = compared(HOST, methods, on_part=lambda line: None, **how)
    rows = {row["method"]: row for row in card["methods"]}
    assert list(rows) == ["confidence", "margin", "entropy", "random", "entropy bound", *methods]
    assert [each["seed"] for each in rows["head"]["fits"]] == [0, 1]
    assert all(each["calls"] <= 900 for each in rows["head"]["fits"])
    assert "within" in rows["head"]["fits"][0]
    assert outcomes.scores["head"].shape == (2, 16, 1)
    assert "delta" not in rows["confidence"]
    again, _ = compared(HOST, methods, on_part=lambda line: None, **how)
    assert again == card
    assert set(methods) < set(LEARNERS)
