"""After a fit: a setting is taken only where the select split shows that it is better."""

import json
from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode import Even, Fixed
from dprm.evaluate.protocol import Account, Setting, settle
from dprm.fit import ESTIMATORS, Branched, Branching, Fitted, HeadFit, MonteCarlo, estimator, fit
from dprm.host.host import Problems
from dprm.order import Stats
from tests.toy_host import ToyHost

HOST = ToyHost()
SELECT = HOST.problems("select", 40)
BRANCHING = Branching(states=3, alternatives=3, temper=0.0)


@pytest.fixture(scope="module")
def branched():
    return fit(Branched(BRANCHING, phases=4, beta=2.0, gate=(0, 0, 8)), HOST, calls=700)


@pytest.fixture(scope="module")
def head():
    return fit(HeadFit(BRANCHING, rounds=2), HOST, calls=1000)


def worthless():
    """Values that rise with confidence: the order of the host, whatever the guidance."""
    order = dprm.Order(beta=1.0, ready=1)
    stats = Stats(order.cells, order.beta)
    bins = order.cells.index(0, torch.linspace(0, 1, 16), None).long()
    stats.add(bins, torch.linspace(0, 1, 16))
    order.merge(stats)
    return Fitted(order.policy(host="toy"), None)


def test_a_policy_that_gains_is_taken_at_the_guidance_that_gains(branched, tmp_path):
    settled = settle(HOST, SELECT, {"branched": branched}, {"branched": (0.001, 4.0)}, folder=tmp_path)
    policy, account = settled.policy, settled.account
    assert policy.guidance == 4.0
    assert account.taken is not None
    assert (account.taken.policy, account.taken.delta) == ("branched", 1.0)
    assert policy.notes["selected_on"] == SELECT.digest
    assert any(line == "taken: branched at guidance 4" for line in account.lines())
    account.save(tmp_path / "account.json")
    assert json.loads((tmp_path / "account.json").read_text())["taken"]["low"] == 1.0


def test_the_choice_is_paid_for_in_calls_and_says_so(branched):
    account = settle(HOST, SELECT, {"branched": branched}, {"branched": (0.001, 4.0)}).account
    assert account.calls == 3 * 40 * 4  # The host's order and two settings.
    assert "the choice took 480 model calls" in account.lines()


def test_where_nothing_is_gained_guidance_is_0():
    settled = settle(HOST, SELECT, {"worthless": worthless()}, {"worthless": (1.0, 2.0)})
    account = settled.account
    assert settled.policy.guidance == 0.0
    assert settled.shuffled is None
    assert account.taken is None
    assert "the host's own order (guidance 0)" in account.lines()[-2]
    # Sixteen events: no value is as large as its radius, and the account says so.
    assert account.settled == {"worthless": 0.0}
    assert account.lines()[-1].startswith("worthless: 0% of its evidence is for values larger than they can be off")
    assert [setting.delta for setting in account.settings] == [0.0, 0.0]


def test_values_that_do_not_transfer_are_not_tried(branched):
    notes = {**branched.policy.notes, "explained": "-0.01"}
    bad = replace(branched, policy=replace(branched.policy, notes=notes))
    settled = settle(HOST, SELECT, {"bad": bad}, {"bad": (4.0,)})
    assert settled.policy.guidance == 0.0
    assert settled.account.settings == ()
    assert "explain nothing" in settled.account.refused["bad"]


def test_what_leans_was_found_in_whole_decodings_and_is_tried_all_the_same(head):
    notes = {**head.policy.notes, "explained": "-0.01", "leaning": "10 · margin"}
    leaning = replace(head, policy=replace(head.policy, notes=notes))
    account = settle(HOST, SELECT, {"head": leaning}, {"head": (30.0,)}).account
    assert account.refused == {}
    assert len(account.settings) == 1


def test_the_control_of_a_head_has_its_strength_chosen_the_same_way(head):
    settled = settle(HOST, SELECT, {"head": head}, {"head": (1.0, 30.0)})
    assert settled.account.taken is not None
    assert settled.shuffled is not None
    assert settled.shuffled.guidance in (1.0, 30.0)
    assert settled.shuffled.rule == settled.policy.rule
    assert torch.equal(settled.shuffled.head.weight, head.shuffled.head.weight)
    assert settled.account.calls == (1 + 2 + 2) * 40 * 4


def test_the_rule_of_deployment_is_that_which_chose(branched):
    settled = settle(HOST, SELECT, {"branched": branched}, {"branched": (4.0,)}, rule="shortlist_top_m")
    assert settled.policy.rule == "shortlist_top_m"


def test_values_asked_prompt_by_prompt_are_taken_only_where_no_others_are(branched):
    asked = fit(MonteCarlo(moments=(0.0,)), HOST, calls=64)
    guidances = {"branched": (4.0,), "worthless": (1.0,), "montecarlo": (10.0,)}
    settled = settle(HOST, SELECT, {"branched": branched, "montecarlo": asked}, guidances)
    assert [setting.delta for setting in settled.account.settings] == [1.0, 1.0]
    assert settled.account.taken is not None
    assert settled.account.taken.policy == "branched"
    settled = settle(HOST, SELECT, {"worthless": worthless(), "montecarlo": asked}, guidances)
    account = settled.account
    assert account.taken is not None
    assert (account.taken.policy, account.taken.calls, account.host_calls) == ("montecarlo", 16.0, 4.0)
    assert (settled.policy.guidance, settled.policy.notes["estimator"]) == (10.0, "montecarlo")
    assert "montecarlo at guidance 10: +1.0000 [+1.0000, +1.0000], 16.0 calls a problem instead of 4.0" in (
        account.lines()
    )


def test_a_gain_too_small_to_see_asks_for_more_problems():
    small = Setting("head", 10.0, 0.51, 0.01, -0.02, 0.04, 5000, 4.0)
    account = Account("toy", 400, "", 0.5, 4.0, None, (small,))
    assert account.lines()[-1] == "to see a gain of +0.0100 takes about 5000 problems: raise --select"


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_keeps_to_its_price(name, width):
    # Sets are forced at quarters of a schedule.
    host = HOST.with_decoding(count=Even(4 // width) if name == "sets" else Fixed(width))
    notes = fit(estimator(name), host, calls=1500).policy.notes
    calls = int(notes["calls"])
    if name == "montecarlo":
        assert calls == 0  # It is paid for when it answers.
    elif name == "leaning":
        assert 0 < calls < 0.25 * 1500
    else:
        assert 0.8 * 1500 < calls < 1.2 * 1500
    assert notes["price"] == "1500"


def test_too_few_calls_are_refused_by_every_estimator():
    for name in ESTIMATORS:
        with pytest.raises(ValueError, match="calls is 63"):
            fit(estimator(name), HOST, calls=63)


def test_a_table_with_enough_evidence_is_settled():
    order = dprm.Order(phases=1, bins=2, beta=1.0, ready=1, baseline="global")
    stats = Stats(order.cells, order.beta)
    stats.add(torch.tensor([0] * 3000 + [1] * 3000), torch.cat([torch.zeros(3000), torch.ones(3000)]))
    order.merge(stats)
    account = settle(HOST, SELECT, {"sure": Fitted(order.policy(host="toy"), None)}, {"sure": ()}).account
    assert account.settled == {"sure": 1.0}
    assert account.taken is None
    assert not any("raise --calls" in line for line in account.lines())


class Lottery(ToyHost):
    """Rewards that only the group of a problem decides, and that an order other than the host's own cannot change."""

    def judge(self, problems: Problems, tokens):
        return (super().judge(problems, tokens) > 0.5).float() * (problems.groups % 2).float()


def test_problems_of_a_group_count_as_one(branched):
    problems = replace(SELECT, group=torch.arange(40) // 20)
    fits, strengths = {"branched": branched}, {"branched": (4.0,)}
    alone, grouped = settle(Lottery(), SELECT, fits, strengths), settle(Lottery(), problems, fits, strengths)
    assert alone.account.taken is not None
    # Twenty wins of one group are one win: of two groups nothing can be told.
    assert grouped.account.settings[0].delta == 0.5
    assert grouped.account.taken is None


def test_problems_that_were_fitted_on_cannot_choose():
    class Careless(ToyHost):
        def problems(self, split, count, seed=0):
            return super().problems("fit" if split == "select" else split, count, seed)

    fitted = fit(Branched(BRANCHING), HOST, calls=700)
    with pytest.raises(ValueError, match=r"problems\[row 0\] of select was fitted on by branched"):
        settle(HOST, Careless().problems("select", 40), {"branched": fitted}, {"branched": (1.0,)})
    settle(HOST, SELECT, {"branched": fitted}, {"branched": (1.0,)})


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("branched", {"beta": float("nan")}, "beta is nan"),
        ("branched", {"gate": (0, 0, -1)}, "ready is -1"),
        ("onpolicy", {"baseline": "foo"}, "baseline is 'foo'"),
        ("onpolicy", {"phases": 0}, "phases is 0"),
        ("onpolicy", {"samples": 0}, "samples is 0"),
        ("montecarlo", {"moments": (1.5,)}, "moments is 1.5"),
        ("montecarlo", {"candidates": 0}, "candidates is 0"),
    ],
)
def test_a_setting_that_cannot_be_is_named_before_any_decoding(name, setting, message):
    with pytest.raises(ValueError, match=message):
        estimator(name, **setting)
