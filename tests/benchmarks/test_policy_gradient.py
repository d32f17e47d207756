"""The policy-gradient peer."""

import pytest
import torch

import dprm
from benchmarks.peers.policy_gradient import DrawnOdds, PolicyGradient, log_probability
from dprm.fit import fit
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.order.head import Head, Sight
from tests.toy_host import ToyHost

HOST = ToyHost()
SETTING = PolicyGradient(prompts=4, samples=16, decisions=4, rate=3e-2)


def learned():
    return fit(SETTING, HOST, calls=12 * 4 * 16 * 4 + 32).policy


def test_it_leaves_the_wrong_order_at_its_price():
    policy = learned()
    ways = {"confidence": Decode(), "learned": Decode(dprm.Order.from_policy(policy))}
    rollouts = decoded(HOST, HOST.problems("test", 30), ways)
    assert rollouts["confidence"].scores.mean() == 0.0
    assert rollouts["learned"].scores.mean() == 1.0
    assert not policy.head.weight.requires_grad
    assert policy.notes["calls"] == str(12 * 4 * 16 * 4 + 32)
    assert policy.notes["estimator"] == "policy_gradient"


class Watched(ToyHost):
    """The toy, which knows how many canvases its model saw at once."""

    def __init__(self):
        self.batches = []

    def model(self):
        plain = super().model()
        return lambda tokens: self.batches.append(len(tokens)) or plain(tokens)


def test_rows_change_nothing_but_how_many_are_decoded_together():
    digests = []
    for rows, most in ((7, 7), (512, 64)):
        host = Watched()
        digests.append(fit(SETTING, host, calls=2 * 4 * 16 * 4 + 32, rows=rows).policy.digest)
        assert max(host.batches) == most
    assert digests[0] == digests[1]


def drawn_head():
    empty = Head.empty()
    weight = 0.3 * torch.randn(empty.weight.shape, generator=torch.Generator().manual_seed(0))
    return Head(weight, support=1)


def test_probabilities_of_all_ordered_pairs_sum_to_one():
    head = drawn_head()
    reading = dprm.read(torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1)))
    candidates = torch.tensor([[True, True, False, True]])
    pairs = torch.tensor([[i, j] for i in (0, 1, 3) for j in (0, 1, 3) if i != j])
    sight = Sight.of(reading, candidates, 2, 0.0, None)[torch.zeros(len(pairs), dtype=torch.int64)]
    probability, divergence = log_probability(head, head.weight, sight, pairs)
    assert probability.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    assert (divergence > 0).all()


def test_the_order_draws_what_the_probabilities_say():
    head, rows = drawn_head(), 20_000
    single = dprm.read(torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(1)))
    reading = dprm.Reading(
        *(column.expand(rows, 4) for column in (single.tokens, single.confidence, single.margin, single.entropy))
    )
    candidates = torch.tensor([[True, True, False, True]]).expand(rows, 4)
    order = dprm.Order(signal=DrawnOdds(), ready=1, head=head)
    drawn = order.select(reading, candidates, 1, 0.0, seed=5).mask.double().mean(0)
    sight = Sight.of(single, candidates[:1], 1, 0.0, None)[torch.zeros(4, dtype=torch.int64)]
    expected = log_probability(head, head.weight, sight, torch.arange(4).unsqueeze(1))[0].exp() * candidates[0]
    torch.testing.assert_close(drawn, expected.double(), atol=0.015, rtol=0)
