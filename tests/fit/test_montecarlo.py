"""Values of one prompt, asked of continuations."""

import torch

import dprm
from dprm.decode.rollout import Rollout, batches
from dprm.fit.montecarlo import MonteCarlo
from tests.toy_host import ToyHost

HOST = ToyHost()


def native(problems):
    return Rollout.joined([part for _, part in batches(HOST, problems, dprm.Order())])


def test_it_finds_the_beginning_that_pays_and_counts_every_call():
    problems = HOST.problems("test", 5)
    plain = native(problems)
    assert plain.reward.max() == 0
    found = MonteCarlo(moments=(0.0,), candidates=4).answer(HOST, problems, dprm.Order(), rows=2)
    assert found.reward.min() == 1
    # One look, four paths of three more steps, and the last three steps of the decoding itself.
    assert found.nfe.tolist() == [1 + 4 * 3 + 3] * 5
    assert found.changed.tolist() == [1] * 5


def test_without_guidance_it_is_the_hosts_order():
    problems = HOST.problems("test", 5)
    found = MonteCarlo(guidance=0.0).answer(HOST, problems, dprm.Order())
    assert torch.equal(found.tokens, native(problems).tokens)
    assert found.changed.sum() == 0


def test_several_paths_of_a_host_that_draws_tokens():
    problems = HOST.problems("test", 4)
    found = MonteCarlo(moments=(0.0, 0.5), candidates=2, paths=3, temperature=1.0).answer(HOST, problems, dprm.Order())
    assert (found.tokens < HOST.mask_id).all()
    assert (found.nfe > native(problems).nfe).all()
