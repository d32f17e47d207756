"""Values of one prompt, asked of continuations."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode.counts import Even, Fixed, Threshold
from dprm.fit import fit
from dprm.fit.cost import Cost
from dprm.fit.montecarlo import MonteCarlo
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from tests.toy_host import ToyHost

HOST = ToyHost()


def answered(way, problems, rows=64, host=HOST):
    return decoded(host, problems, {"way": way}, rows=rows)["way"]


def test_it_finds_the_beginning_that_pays_and_counts_every_call():
    problems = HOST.problems("test", 5)
    assert answered(Decode(), problems).scores.max() == 0
    rollout = answered(MonteCarlo(moments=(0.0,), candidates=4), problems, rows=2)
    assert rollout.scores.min() == 1
    # One look, four paths of three more steps, and the last three steps of the decoding itself.
    assert rollout.nfe.tolist() == [1 + 4 * 3 + 3] * 5
    assert rollout.changed.tolist() == [1] * 5


@pytest.mark.parametrize("count", [Fixed(1), Fixed(2), Even(2)])
def test_every_reveal_has_its_step_and_its_confidence(count):
    problems, host = HOST.problems("test", 5), HOST.with_decoding(count=count)
    rollout = answered(MonteCarlo(moments=(0.0, 0.5), candidates=2), problems, host=host)
    assert (rollout.step_map > 0).all()
    assert rollout.step_map.amax() <= (4 if count == Fixed(1) else 2)
    assert ((rollout.confidence > 0) & (rollout.confidence <= 1)).all()


def test_a_count_without_a_fixed_number_of_steps_is_refused():
    host = HOST.with_decoding(count=Threshold(0.9))
    with pytest.raises(ValueError, match=r"count is Threshold.*need a fixed number of steps"):
        answered(MonteCarlo(), HOST.problems("test", 2), host=host)


def test_what_was_given_is_not_revealed():
    problems = HOST.problems("test", 5)
    canvas = problems.canvas.clone()
    canvas[:3] = 1  # Nothing is left to do in three rows, and they are asked nothing.
    rollout = answered(MonteCarlo(moments=(0.0,), candidates=2), replace(problems, canvas=canvas))
    assert rollout.step_map[:3].eq(0).all()
    assert rollout.confidence[:3].isnan().all()
    assert rollout.nfe[:3].tolist() == rollout.decisions[:3].tolist() == [0, 0, 0]


def test_without_guidance_it_is_the_hosts_order():
    problems = HOST.problems("test", 5)
    rollout = answered(MonteCarlo(guidance=0.0), problems)
    assert torch.equal(rollout.tokens, answered(Decode(), problems).tokens)
    assert rollout.changed.sum() == 0


def test_several_paths_of_a_host_that_draws_tokens():
    problems = HOST.problems("test", 4)
    setting = MonteCarlo(moments=(0.0, 0.5), candidates=2, paths=3, temperature=1.0)
    rollout = answered(setting, problems)
    assert (rollout.tokens < HOST.decoding.mask_id).all()
    assert (rollout.nfe > answered(Decode(), problems).nfe).all()
    assert torch.equal(rollout.tokens, answered(setting, problems, rows=3).tokens)


def test_a_fit_decodes_nothing_and_its_policy_says_how_to_answer(tmp_path):
    setting = MonteCarlo(moments=(0.0, 0.5), candidates=3, beta=2.0, guidance=5.0)
    policy = fit(setting, HOST, calls=64).policy
    assert Cost.of_notes(policy.notes) == Cost()
    policy.save(tmp_path / "p.dprm")
    loaded = dprm.Policy.load(tmp_path / "p.dprm")
    assert loaded.digest == policy.digest
    assert MonteCarlo.of_policy(loaded) == setting
    assert MonteCarlo.of_policy(loaded, guidance=1.0) == replace(setting, guidance=1.0)
    # By itself, without anyone to ask, it is the host's order.
    problems = HOST.problems("test", 5)
    stored = answered(Decode(dprm.Order.from_policy(policy)), problems)
    assert torch.equal(answered(Decode(), problems).tokens, stored.tokens)


@pytest.mark.parametrize(
    "change", [{"moments": (0.5,)}, {"candidates": 3}, {"paths": 2}, {"temperature": 0.5}, {"beta": 2.0}]
)
def test_the_digest_of_a_policy_covers_what_it_asks(change):
    policies = [fit(setting, HOST, calls=64).policy for setting in (MonteCarlo(), MonteCarlo(**change))]
    assert policies[0].digest != policies[1].digest
    assert replace(policies[0], notes={**policies[0].notes, "seed": "5"}).digest == policies[0].digest


def test_a_policy_with_values_of_its_own_is_no_setting():
    with pytest.raises(ValueError, match="no note 'local'"):
        MonteCarlo.of_policy(dprm.Order().policy())
