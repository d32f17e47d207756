"""The paper's controller: its settings, and that it is deployed whatever select says."""

from typing import ClassVar

import pytest

import dprm
from dprm.decode import Even
from dprm.evaluate.learn import fit_and_settle
from dprm.evaluate.verdict import REGARDLESS
from dprm.fit import ESTIMATORS, estimator, fit
from dprm.host.controller import Controller
from tests.toy_host import ToyHost


class Small(ToyHost):
    paper: ClassVar[Controller] = Controller(
        phases=4, ready=16.0, decoding_ready=8.0, guidance=2.0, warm=0.25, switch=0.5, shortlist=(2, 4, 2)
    )


def test_the_policy_has_the_settings_of_the_host():
    policy = fit(estimator("paper"), Small(), calls=6_000).policy
    assert (policy.cells.phases, policy.cells.bins, policy.cells.aux) == (4, 16, 1)
    assert policy.baseline == "none"
    assert policy.rule == "shortlist_top_m"
    assert policy.shortlist == (2, 4, 2)
    assert policy.guidance == 2.0
    assert policy.gate.ready == 8.0
    rounds = policy.step
    assert (policy.gate.warm, policy.gate.switch) == (0.25 * rounds, 0.5 * rounds)
    assert policy.notes["estimator"] == "paper"
    assert "warm=0.25" in policy.notes["controller"]


def test_it_is_deployed_at_its_own_guidance_and_says_what_select_thought_of_it(tmp_path):
    class Still(Small):
        """Nothing can be gained: every answer is worth the same."""

        def judge(self, problems, tokens):
            return super().judge(problems, tokens) * 0

    _, settled = fit_and_settle(Still(), ["paper"], 2_000, select=20, folder=tmp_path)
    assert settled.account.taken is None
    assert settled.policy.guidance == 2.0
    assert settled.policy.rule == "shortlist_top_m"
    assert settled.policy.notes[REGARDLESS].startswith("select says +0.0000")
    _, usual = fit_and_settle(Still(), ["onpolicy"], 2_000, select=20, folder=tmp_path)
    assert usual.policy.guidance == 0.0
    assert REGARDLESS not in usual.policy.notes


def test_it_is_not_chosen_among_others():
    with pytest.raises(ValueError, match="shown beside others"):
        fit_and_settle(Small(), ["paper", "head"], 2_000, select=20)


def test_of_branched_sets_every_position_has_the_terminal_reward_of_its_branch():
    class Sets(ToyHost):
        paper: ClassVar[Controller] = Controller(phases=4, states=True, guidance=2.0, rule="top_m", sets=True)

    host = Sets().with_decoding(count=Even(4), states=2, state_of=lambda canvas, reading: reading.tokens.clamp(max=1))
    policy = fit(estimator("paper"), host, calls=500).policy
    assert policy.reward_range == (0.0, 1.0)
    assert policy.rule == "top_m"
    assert policy.cells.shape == (4, 16, 2)


def test_every_host_has_a_controller_that_an_order_can_have():
    assert "paper" in ESTIMATORS
    for own in (Controller(), Small.paper):
        dprm.Order(own.phases, own.bins, 1, own.beta, rule=own.rule, shortlist=own.shortlist)
    with pytest.raises(ValueError, match="switch"):
        Controller(warm=0.5, switch=0.2)
