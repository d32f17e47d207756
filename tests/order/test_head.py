"""A head inside the order module: what it sees, and that it changes nothing until it was fitted."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.order.features import names
from dprm.order.files import write_tensors
from dprm.order.head import Head, Sight
from dprm.order.policy import PolicyError
from dprm.order.policy import _digest as digest_of
from tests.draws import candidates, logits


def fitted(seed=0, support=1000, aux=1):
    weight = torch.randn(len(names(aux, 4)), generator=torch.Generator().manual_seed(seed)) * 0.1
    return Head(weight, aux, support=support)


def some(seed, rows=12, length=20):
    return dprm.read(logits(seed, rows, length, 6)), candidates(seed, rows, length)


@pytest.mark.parametrize("rule", ["top_m", "shortlist_top_m", "soft_bon"])
def test_an_empty_head_leaves_the_hosts_order(rule):
    for seed in range(10):
        reading, flags = some(seed)
        order = dprm.Order(head=Head.empty(support=1000), guidance=50.0, rule=rule)
        assert torch.equal(order.select(reading, flags, 3, 0.4).mask, dprm.Order().select(reading, flags, 3, 0.4).mask)


def test_a_fitted_head_is_gated_by_its_evidence():
    reading, flags = some(1)
    none = dprm.Order(head=fitted(support=0), guidance=50.0)
    assert not none.select(reading, flags, 3, 0.4).changed.any()
    half = dprm.Order(head=fitted(support=32), guidance=1.0).select(reading, flags, 3, 0.4)
    full = dprm.Order(head=fitted(support=64), guidance=0.5).select(reading, flags, 3, 0.4)
    choosing = flags.any(1)
    assert torch.equal(half.score[choosing], full.score[choosing])
    assert (half.gate[choosing] == 0.5).all()


def test_a_decision_unlike_any_that_was_compared_is_the_hosts():
    """The gate of a head is the share of candidates in cells that were compared often enough."""
    reading, flags = some(7)
    cells = dprm.Order().cells
    cell = cells.index(cells.first_of_phase(0.4), reading.confidence, None).long()
    never = Head(fitted().weight, support=1000, counts=torch.zeros(cells.count, dtype=torch.int64))
    elsewhere = never.counts + 100
    elsewhere[cell.unique()] = 0
    for counts in (never.counts, elsewhere):
        order = dprm.Order(head=Head(never.weight, support=1000, counts=counts), guidance=50.0)
        choice = order.select(reading, flags, 3, 0.4)
        assert torch.equal(choice.mask, dprm.Order().select(reading, flags, 3, 0.4).mask)
        assert not choice.gate[flags].any()
    counts = never.counts.clone()
    counts[cell[0][flags[0]].unique()] = 32
    choice = dprm.Order(head=Head(never.weight, support=1000, counts=counts), guidance=50.0).select(
        reading, flags, 3, 0.4
    )
    assert (choice.gate[0] == 0.5).all()
    shared = torch.isin(cell, cell[0][flags[0]]) & flags
    wanted = 0.5 * shared.sum(1) / flags.sum(1).clamp(min=1)
    torch.testing.assert_close(choice.gate[:, 0][flags.any(1)], wanted[flags.any(1)])


def test_scores_are_the_signal_plus_the_heads_value():
    reading, flags = some(2)
    head = fitted()
    choice = dprm.Order(head=head, guidance=3.0, beta=2.0, signal="odds").select(reading, flags, 2, 0.4)
    value = head(Sight.of(reading, flags, 2, 0.4, None))
    torch.testing.assert_close(choice.value, value)
    p = reading.confidence.double()
    wanted = (p.log() - (1 - p).clamp(min=2.0**-25).log() + 6.0 * value).float()
    torch.testing.assert_close(choice.score, wanted)
    best = torch.where(flags, wanted, -torch.inf)
    for row in range(len(flags)):
        chosen = choice.mask[row]
        if flags[row].sum() > 2:
            assert best[row][chosen].min() >= best[row][flags[row] & ~chosen].max()


def test_a_rows_values_do_not_depend_on_the_other_rows():
    reading, flags = some(3)
    head = fitted()
    whole = head(Sight.of(reading, flags, 2, 0.4, None))
    alone = torch.cat([head(Sight.of(reading[[row]], flags[[row]], 2, 0.4, None)) for row in range(len(flags))])
    assert torch.equal(whole, alone)


def test_a_head_does_not_look_at_what_is_no_candidate_but_at_that_it_is_none():
    reading, flags = some(4)
    head = fitted()
    other = dprm.Reading(
        reading.tokens,
        torch.where(flags, reading.confidence, 0.123),
        torch.where(flags, reading.margin, 0.0),
        torch.where(flags, reading.entropy, 3.0),
    )
    torch.testing.assert_close(head(Sight.of(reading, flags, 2, 0.4, None)), head(Sight.of(other, flags, 2, 0.4, None)))


def test_a_head_policy_is_one_file_that_acts_alike(tmp_path):
    counts = torch.arange(8 * 16 * 4) % 128
    order = dprm.Order(aux=4, head=replace(fitted(aux=4), counts=counts), guidance=7.0, signal="odds")
    policy = order.policy(host="toy")
    policy.save(tmp_path / "p")
    again = dprm.Policy.load(tmp_path / "p", values="head")
    assert again.digest == policy.digest
    reading, flags = some(5)
    aux = torch.randint(0, 4, flags.shape, generator=torch.Generator().manual_seed(0))
    one, two = (o.select(reading, flags, 3, 0.4, aux=aux) for o in (order, dprm.Order.from_policy(again)))
    assert torch.equal(one.score, two.score)
    assert torch.equal(one.mask, two.mask)


def test_an_order_with_a_head_does_not_learn_from_rewards():
    reading, flags = some(6)
    order = dprm.Order(head=fitted())
    with pytest.raises(ValueError, match="cannot learn on"):
        order.observe(order.select(reading, flags, 1, 0.4), torch.rand(12))


def test_odds_have_the_order_of_confidence_bit_for_bit():
    for seed in range(20):
        reading, flags = some(seed, 16, 40)
        for m in (1, 3, 7):
            one = dprm.Order(signal="odds").select(reading, flags, m, 0.4).mask
            assert torch.equal(one, dprm.Order().select(reading, flags, m, 0.4).mask)


def rewritten(policy, path, tensors=None, **fields):
    """The file of a policy with other fields, checksum and all."""
    header = {**policy.header, "digest": policy.digest, **fields}
    tensors = {"weight": policy.head.weight} if tensors is None else tensors
    checked = {name: field for name, field in header.items() if name != "digest"}
    write_tensors(path, tensors, {**header, "checksum": digest_of(checked, tensors)})
    return path


def test_a_head_of_another_version_is_refused_by_name(tmp_path):
    policy = dprm.Order(head=fitted(), signal="odds").policy()
    for head in ({"aux": 1, "reach": 3, "support": 9}, {"aux": 1, "reach": 4, "support": 9, "depth": 2}):
        path = rewritten(policy, tmp_path / "old.dprm", head=head)
        with pytest.raises(PolicyError, match=r"old\.dprm holds a head that this version does not know"):
            dprm.Policy.load(path)


def test_a_head_of_the_first_schema_is_read_as_it_acted_unless_it_had_a_network(tmp_path):
    policy = dprm.Order(head=fitted(), signal="odds").policy()
    header = {name: field for name, field in policy.header.items() if name not in ("warm_signal", "tables")}
    head = {"aux": 1, "reach": 4, "support": 1000, "width": 0}
    tensors = {"head.linear.weight": policy.head.weight.unsqueeze(0)}
    first = {**header, "schema": 1, "proposal": "host", "head": head}
    write_tensors(tmp_path / "first.dprm", tensors, {**first, "checksum": digest_of(first, tensors)})
    assert torch.equal(dprm.Policy.load(tmp_path / "first.dprm").head.weight, policy.head.weight)
    deep = {**first, "head": {**head, "width": 16}}
    write_tensors(tmp_path / "deep.dprm", tensors, {**deep, "checksum": digest_of(deep, tensors)})
    with pytest.raises(PolicyError, match="holds a head with a network"):
        dprm.Policy.load(tmp_path / "deep.dprm")


def test_a_head_of_the_first_schema_is_stored_with_unit_spread(tmp_path):
    policy = dprm.Order(head=fitted(), signal="odds", guidance=268.0).policy(spread="0.25")
    header = {name: field for name, field in policy.header.items() if name not in ("warm_signal", "tables")}
    head = {"aux": 1, "reach": 4, "support": 1000, "width": 0}
    first = {**header, "schema": 1, "proposal": "host", "head": head}
    tensors = {"head.linear.weight": policy.head.weight.unsqueeze(0)}
    write_tensors(tmp_path / "p", tensors, {**first, "checksum": digest_of(first, tensors)})
    read = dprm.Policy.load(tmp_path / "p")
    # Guidance is in log odds then, and what it does is what it did.
    assert read.guidance == 67.0
    assert torch.equal(read.head.weight, policy.head.weight * 4)
    assert "spread" not in read.notes
