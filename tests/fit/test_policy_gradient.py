"""The policy-gradient peer."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.evaluate.compare import compare
from dprm.fit.policy_gradient import PolicyGradient, log_probability
from dprm.order.head import Head, HeadShape, Sight
from tests.toy_host import ToyHost

HOST = ToyHost()
FIT = PolicyGradient(rounds=12, prompts=4, samples=16, decisions=4, rate=1e-2, head_width=16)


def test_it_leaves_the_wrong_order(tmp_path):
    policy = FIT.fit(HOST, HOST.problems("fit", 16), tmp_path / "p.dprm")
    orders = {"confidence": dprm.Order(), "learned": dprm.Order.from_policy(policy)}
    card, _ = compare(HOST, HOST.problems("test", 30), orders)
    assert card.arms["confidence"].mean == 0.0
    assert card.arms["learned"].mean == 1.0
    assert policy.notes["rollouts"] == str(12 * 4 * 16)


@pytest.mark.parametrize("linear", [True, False])
def test_the_linear_part_is_trained_or_left_out(tmp_path, linear):
    policy = replace(FIT, linear=linear).fit(HOST, HOST.problems("fit", 16), tmp_path / "p.dprm")
    assert bool(policy.head.linear.weight.any()) is linear
    assert policy.head.network.value.weight.any()


@pytest.mark.parametrize("linear", [True, False])
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path, linear):
    problems = HOST.problems("fit", 16)
    setting = replace(FIT, linear=linear)
    whole = setting.fit(HOST, problems, tmp_path / "whole.dprm")

    def kill(done, reward):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        setting.fit(HOST, problems, tmp_path / "cut.dprm", kill)
    assert setting.fit(HOST, problems, tmp_path / "cut.dprm").digest == whole.digest


def test_probabilities_of_all_ordered_pairs_sum_to_one():
    head = Head(HeadShape(width=16), seed=1)
    with torch.no_grad():
        head.network.value.weight.normal_(generator=torch.Generator().manual_seed(0))
    reading = dprm.read(torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1)))
    candidates = torch.tensor([[True, True, False, True]])
    pairs = torch.tensor([[i, j] for i in (0, 1, 3) for j in (0, 1, 3) if i != j])
    sight = Sight.of(reading, candidates, 2, 0.0, None)[torch.zeros(len(pairs), dtype=torch.int64)]
    probability, divergence = log_probability(head, sight, pairs)
    assert probability.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    assert (divergence > 0).all()


def test_the_tilted_proposal_draws_what_the_probabilities_say():
    head = Head(HeadShape(width=16), seed=1, support=1)
    with torch.no_grad():
        head.network.value.weight.normal_(generator=torch.Generator().manual_seed(0))
    one = dprm.read(torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1)))
    rows = 20_000
    reading = dprm.Reading(*(part.expand(rows, 4) for part in (one.tokens, one.confidence, one.margin, one.entropy)))
    candidates = torch.tensor([[True, True, False, True]]).expand(rows, 4)
    order = dprm.Order(
        signal="odds", ready=1, rule="shortlist_top_m", shortlist=(1, 1, 1), proposal="tilted", head=head
    )
    drawn = order.select(reading, candidates, 1, 0.0, seed=5).mask.double().mean(0)
    sight = Sight.of(one, candidates[:1], 1, 0.0, None)[torch.zeros(4, dtype=torch.int64)]
    expected = log_probability(head, sight, torch.arange(4).unsqueeze(1))[0].exp() * candidates[0]
    torch.testing.assert_close(drawn, expected.double().detach(), atol=0.015, rtol=0)
