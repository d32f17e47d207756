"""After a fit: a setting is taken only where the select split shows that it is better."""

import json
from dataclasses import replace

import torch

import dprm
from dprm.evaluate.protocol import settle
from dprm.fit import Branched, Branching, MonteCarlo, estimator
from dprm.order import Stats
from tests.toy_host import ToyHost

HOST = ToyHost()
SELECT = HOST.problems("select", 40)


def fitted(tmp_path):
    setting = Branched(Branching(states=3, alternatives=3, temper=0.0), phases=4, beta=2.0, ready=8)
    return setting.fit(HOST, HOST.problems("fit", 32), tmp_path / "p.dprm")


def worthless():
    """Values that rise with confidence: the order of the host, whatever the guidance."""
    order = dprm.Order(beta=1.0, ready=1)
    stats = Stats(order.cells, order.beta)
    bins = order.cells.index(0, torch.linspace(0, 1, 16), None).long()
    stats.add(bins, torch.linspace(0, 1, 16))
    order.merge(stats)
    return order.policy(host="toy")


def test_a_policy_that_gains_is_taken_at_the_guidance_that_gains(tmp_path):
    policy, account = settle(HOST, SELECT, {"branched": fitted(tmp_path)}, {"branched": (0.001, 4.0)}, folder=tmp_path)
    assert policy.guidance == 4.0
    assert account.taken is not None
    assert (account.taken.policy, account.taken.delta) == ("branched", 1.0)
    assert policy.notes["selected_on"] == SELECT.digest
    assert any(line == "taken: branched at guidance 4" for line in account.lines())
    account.save(tmp_path / "account.json")
    assert json.loads((tmp_path / "account.json").read_text())["taken"]["low"] == 1.0


def test_where_nothing_is_gained_guidance_is_0():
    policy, account = settle(HOST, SELECT, {"worthless": worthless()}, {"worthless": (1.0, 2.0)})
    assert policy.guidance == 0.0
    assert account.taken is None
    assert "the host's own order (guidance 0)" in account.lines()[-2]
    # Sixteen events: no value is as large as its radius, and the account says so.
    assert account.settled == {"worthless": 0.0}
    assert account.lines()[-1].startswith("worthless: 0% of its evidence is for values larger than they can be off")
    assert [setting.delta for setting in account.settings] == [0.0, 0.0]


def test_values_that_do_not_transfer_are_not_tried(tmp_path):
    policy = fitted(tmp_path)
    bad = replace(policy, notes={**policy.notes, "explained": "-0.01"})
    kept, account = settle(HOST, SELECT, {"bad": bad}, {"bad": (4.0,)})
    assert kept.guidance == 0.0
    assert account.settings == ()
    assert "explain nothing" in account.refused["bad"]


def test_values_asked_prompt_by_prompt_are_taken_only_where_no_others_are(tmp_path):
    asked = MonteCarlo(moments=(0.0,)).fit(HOST, SELECT, tmp_path / "m.dprm")
    guidances = {"branched": (4.0,), "worthless": (1.0,), "montecarlo": (10.0,)}
    both = {"branched": fitted(tmp_path), "montecarlo": asked}
    policy, account = settle(HOST, SELECT, both, guidances)
    assert [setting.delta for setting in account.settings] == [1.0, 1.0]
    assert account.taken is not None
    assert account.taken.policy == "branched"
    policy, account = settle(HOST, SELECT, {"worthless": worthless(), "montecarlo": asked}, guidances, folder=tmp_path)
    assert account.taken is not None
    assert (account.taken.policy, account.taken.calls, account.host_calls) == ("montecarlo", 16.0, 4.0)
    assert (policy.guidance, policy.notes["estimator"]) == (10.0, "montecarlo")
    assert "montecarlo at guidance 10: +1.0000 [+1.0000, +1.0000], 16.0 calls a problem instead of 4.0" in (
        account.lines()
    )


def test_a_gain_too_small_to_see_asks_for_more_problems():
    from dprm.evaluate.protocol import Account, Setting

    small = Setting("head", 10.0, 0.51, 0.01, -0.02, 0.04, 5000, 4.0)
    account = Account("toy", 400, "", 0.5, 4.0, None, (small,))
    assert account.lines()[-1] == "to see a gain of +0.0100 takes about 5000 problems: raise --select"


def test_every_estimator_keeps_to_its_price():
    for name, plan in ((name, estimator(name, 2_000)) for name in ("onpolicy", "branched", "head", "policy_gradient")):
        assert plan.rounds >= 1, name
        assert plan.prompts >= 1, name
    assert estimator("onpolicy", 2_000).estimator.trajectories <= 2_000
    gradient = estimator("policy_gradient", 2_000).estimator
    assert gradient.rounds * gradient.prompts * gradient.samples <= 2_000
    branching = estimator("branched", 2_000)
    assert (
        branching.prompts * branching.estimator.branching.states * branching.estimator.branching.alternatives <= 2_000
    )


def test_a_table_with_enough_evidence_is_settled():
    order = dprm.Order(phases=1, bins=2, beta=1.0, ready=1, baseline="global")
    stats = Stats(order.cells, order.beta)
    stats.add(torch.tensor([0] * 3000 + [1] * 3000), torch.cat([torch.zeros(3000), torch.ones(3000)]))
    order.merge(stats)
    _, account = settle(HOST, SELECT, {"sure": order.policy(host="toy")}, {"sure": ()})
    assert account.settled == {"sure": 1.0}
    assert account.taken is None
    assert not any("raise --paths" in line for line in account.lines())
