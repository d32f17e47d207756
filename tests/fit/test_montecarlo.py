"""Values of one prompt, asked of continuations."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.fit.cost import Cost
from dprm.fit.montecarlo import MonteCarlo
from dprm.host.rollout import Rollout, batches
from tests.toy_host import ToyHost

HOST = ToyHost()


def native(problems):
    return Rollout.joined([part for _, part in batches(HOST, problems, dprm.Order())])


def answered(setting, problems, rows=64):
    return Rollout.joined(list(setting.batches(HOST, problems, dprm.Order(), rows)))


def test_it_finds_the_beginning_that_pays_and_counts_every_call():
    problems = HOST.problems("test", 5)
    plain = native(problems)
    assert plain.reward.max() == 0
    found = answered(MonteCarlo(moments=(0.0,), candidates=4), problems, rows=2)
    assert found.reward.min() == 1
    # One look, four paths of three more steps, and the last three steps of the decoding itself.
    assert found.nfe.tolist() == [1 + 4 * 3 + 3] * 5
    assert found.changed.tolist() == [1] * 5


@pytest.mark.parametrize("width", [1, 2])
def test_every_reveal_has_its_step_and_its_confidence(width):
    problems = HOST.problems("test", 5)
    found = answered(MonteCarlo(moments=(0.0, 0.5), candidates=2, width=width), problems)
    assert (found.step_map > 0).all()
    assert found.step_map.amax() <= 4 // width
    assert ((found.confidence > 0) & (found.confidence <= 1)).all()


def test_what_was_given_is_not_revealed():
    problems = HOST.problems("test", 5)
    canvas = problems.canvas.clone()
    canvas[:3] = 1  # Nothing is left to do in three rows, and they are asked nothing.
    found = answered(MonteCarlo(moments=(0.0,), candidates=2), replace(problems, canvas=canvas))
    assert found.step_map[:3].eq(0).all()
    assert found.confidence[:3].isnan().all()
    assert found.nfe[:3].tolist() == found.decisions[:3].tolist() == [0, 0, 0]


def test_without_guidance_it_is_the_hosts_order():
    problems = HOST.problems("test", 5)
    found = answered(MonteCarlo(guidance=0.0), problems)
    assert torch.equal(found.tokens, native(problems).tokens)
    assert found.changed.sum() == 0


def test_several_paths_of_a_host_that_draws_tokens():
    problems = HOST.problems("test", 4)
    found = answered(MonteCarlo(moments=(0.0, 0.5), candidates=2, paths=3, temperature=1.0), problems)
    assert (found.tokens < HOST.mask_id).all()
    assert (found.nfe > native(problems).nfe).all()


def test_a_fit_decodes_nothing_and_its_policy_says_how_to_answer(tmp_path):
    setting = MonteCarlo(moments=(0.0, 0.5), candidates=3, beta=2.0, guidance=5.0)
    problems = HOST.problems("fit", 4)
    policy = setting.fit(HOST, problems, tmp_path / "p.dprm")
    assert Cost.of_notes(policy.notes) == Cost()
    assert MonteCarlo.of_policy(policy) == setting
    assert MonteCarlo.of_policy(policy, guidance=1.0, width=2, seed=3) == replace(
        setting, guidance=1.0, width=2, seed=3
    )
    # By itself, without anyone to ask, it is the host's order.
    plain, stored = (Rollout.joined([part for _, part in batches(HOST, problems, order)]) for order in orders(policy))
    assert torch.equal(plain.tokens, stored.tokens)
    assert setting.fit(HOST, problems, tmp_path / "p.dprm").digest == policy.digest
    with pytest.raises(ValueError, match="of another fit"):
        MonteCarlo(candidates=5).fit(HOST, problems, tmp_path / "p.dprm")


def orders(policy):
    return dprm.Order(), dprm.Order.from_policy(policy)


def test_a_policy_with_values_of_its_own_is_no_setting():
    with pytest.raises(ValueError, match="no note 'local'"):
        MonteCarlo.of_policy(dprm.Order().policy())
