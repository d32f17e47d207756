"""Ablations take one thing away and nothing else."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.evaluate.ablations import (
    GATE_ONLY,
    NO_PHASES,
    NO_SHORTLIST,
    NO_STATES,
    PERMUTATIONS,
    REWARD_ONLY,
    SHUFFLED,
    UNIFORM,
    ablations,
    count_only,
    gate_only,
    no_phases,
    no_shortlist,
    no_states,
    reward_only,
    shuffled_values,
    uniform,
)
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.order import Order
from dprm.order.features import names
from dprm.order.head import Head
from dprm.order.noise import mix_rows
from dprm.order.policy import support_of
from tests.draws import candidates, logits, taught
from tests.toy_host import ToyHost

READING = dprm.read(logits(0, 8, 40, 5))
FLAGS = candidates(0, 8, 40)


def learned(**setting):
    return taught(dprm.Order(phases=2, bins=8, **setting), 3, share=0.7)


def picked(order, seed=0):
    return order.select(READING, FLAGS, budget=3, progress=0.2, seed=seed)


def test_shuffling_permutes_the_values_of_cells_with_evidence_and_keeps_the_gate():
    order = learned()
    whole, mixed = order.table(), shuffled_values(order, 1).table()
    known = whole.support > 0
    values, supports = mixed.value.view(PERMUTATIONS, -1), mixed.support.view(PERMUTATIONS, -1)
    for value, support in zip(values, supports):
        assert torch.equal(support, whole.support)
        assert torch.equal(value[known].sort().values, whole.value[known].sort().values)
        assert not torch.equal(value, whole.value)
        assert bool((value[~known] == 0).all())
    assert len(values.unique(dim=0)) > 1
    assert torch.equal(shuffled_values(order, 1).table().value, mixed.value)
    assert not torch.equal(shuffled_values(order, 2).table().value, mixed.value)
    assert shuffled_values(order).guidance == order.guidance


def test_gate_only_draws_shortlists_and_takes_the_surest_of_them():
    order = gate_only(learned(shortlist=(8, 8, 1)))
    choice = picked(order)
    assert torch.equal(choice.score, choice.log_psi)
    assert bool(choice.changed.any())
    plain = dprm.Order(phases=2, bins=8, rule="shortlist_top_m", shortlist=(8, 8, 1), explore=True)
    assert torch.equal(choice.mask, picked(plain).mask)
    everything = picked(gate_only(learned(shortlist=(40, 40, 1))))
    host = picked(dprm.Order())
    assert torch.allclose((READING.confidence * everything.mask).sum(1), (READING.confidence * host.mask).sum(1))


def test_no_shortlist_takes_the_largest_scores():
    order = learned(rule="soft_bon")
    choice = picked(no_shortlist(order))
    hidden = choice.score.masked_fill(~FLAGS, -torch.inf)
    for row in range(8):
        lowest = hidden[row][choice.mask[row]].min() if choice.mask[row].any() else torch.inf
        assert bool((hidden[row][~choice.mask[row] & FLAGS[row]] <= lowest + 1e-6).all())
    assert torch.equal(choice.mask, picked(no_shortlist(order), seed=9).mask)


def test_reward_only_scores_by_the_tilt_alone():
    order = learned()
    choice = picked(reward_only(order))
    assert bool((choice.log_psi == 0).all())
    bonus = order.select(READING, FLAGS, 3, 0.2)
    assert torch.allclose(choice.score, bonus.score - bonus.log_psi, atol=1e-5)


def test_uniform_knows_nothing():
    assert uniform(learned()).policy().digest == dprm.Order(signal="random").policy().digest


def test_an_own_signal_stays_with_the_ablation():
    def mine(reading):
        return reading.margin

    order = learned(signal=mine)
    table = torch.zeros(len(FLAGS), dtype=torch.int64)
    choice = shuffled_values(order).select(READING, FLAGS, budget=3, progress=0.2, table=table)
    assert torch.allclose(choice.log_psi, picked(order).log_psi)
    assert bool((picked(reward_only(order)).log_psi == 0).all())


def test_what_would_act_alike_is_not_added_twice():
    host = ToyHost()
    policy = learned().policy()
    arms = arms_of(host, ("random",), {"dprm": policy}, ablate=True)
    # Every cell was seen equally often: counts alone say nothing here.
    wanted = (SHUFFLED, GATE_ONLY, NO_PHASES, REWARD_ONLY)
    assert list(arms) == ["confidence", "random", "dprm", *(f"dprm, {what}" for what in wanted)]
    assert {arm.ablates for arm in arms.values()} == {None, "dprm"}
    drawn = arms_of(host, (), {"dprm": learned(rule="soft_bon").policy()}, ablate=True)
    assert {f"dprm, {NO_SHORTLIST}", f"dprm, {UNIFORM}"} <= drawn.keys()
    assert list(arms_of(host, ("random",), {"dprm": policy})) == ["confidence", "random", "dprm"]


def test_counts_alone_rank_cells_by_how_often_they_were_seen():
    order = learned()
    counted, whole = count_only(order), order.table()
    assert counted is None  # Every cell was seen equally often.
    stats = dprm.Stats(order.cells)
    stats.add(torch.tensor([0, 0, 0, 1]), torch.tensor([0.0, 0.0, 0.1, 0.9]))
    order.merge(stats)
    table, whole = count_only(order).table(), order.table()
    known = whole.support > 0
    by_count = whole.support[known].argsort(stable=True)
    assert bool((table.value[known][by_count].diff() >= 0).all())
    assert float(table.value[known].std()) == pytest.approx(float(whole.value[known].std()))


def test_the_control_of_a_head_is_fitted_with_it_not_made_of_it():
    names = len(Head.empty(1, 1).weight)
    head = Order(head=Head(torch.linspace(-1, 1, names), 1, 1, 100), ready=1)
    other = Order(head=Head(torch.linspace(1, -1, names), 1, 1, 100), ready=1)
    assert shuffled_values(head) is None
    assert SHUFFLED not in ablations(head)
    fitted = ablations(head, other.policy())[SHUFFLED]
    assert fitted.policy().digest == other.policy().digest


def test_a_card_pairs_every_ablation_with_its_policy(tmp_path):
    host = ToyHost()
    good = dprm.Order(phases=4, bins=16, beta=2.0, ready=1)
    cell = 9  # first phase, confidence .58 → bin 9: the positions that lead to 1111
    stats = dprm.Stats(good.cells, 2.0, (-1.0, 1.0), centred=True)
    stats.add(torch.tensor([cell, cell, 11, 11]), torch.tensor([0.9, 0.9, -0.9, -0.9]))
    good.merge(stats)
    arms = arms_of(host, (), {"dprm": good.policy()}, ablate=True)
    comparison = compare(host, host.problems("test", 60), arms, split="test", folder=tmp_path)
    card = comparison.card
    assert card.arms["dprm"].mean == 1.0
    for name, contender in arms.items():
        if contender.ablates is not None:
            arm = card.arms[name]
            assert arm.ablates == "dprm"
            assert arm.gap == pytest.approx(1.0 - float(comparison.rollouts[name][0].scores.mean()))
    assert len(list(tmp_path.glob("dprm, gate only-*.rollout"))) == 1
    # Two cells change places in some of the permutations, and every problem belongs to one of them.
    swapped = shuffled_values(good).table().value.view(PERMUTATIONS, -1)[:, cell] < 0
    problems = host.problems("test", 60)
    lost = swapped[mix_rows(problems.key, 6) % PERMUTATIONS]
    assert 0 < int(lost.sum()) < 60
    shuffled_reward = comparison.rollouts["dprm, shuffled values"][0].scores[:, 0]
    assert torch.equal(shuffled_reward, (~lost).float())
    # Four events are not enough evidence for anything.
    assert card.arms["dprm"].diagnostics["settled"] == 0.0
    assert card.verdict["reason"] == "a gain, but the table is sparse: 25% of the decisions in ready cells"


def test_poorer_cells_share_their_evidence_and_its_mean():
    order = dprm.Order(phases=2, bins=2, aux=3, beta=2.0, ready=1, baseline="none")
    stats = dprm.Stats(order.cells, 2.0)
    # Phase 0, bin 1: states 0 and 1, three events and one.
    stats.add(torch.tensor([3, 3, 3, 4]), torch.tensor([1.0, 1.0, 1.0, 0.0]))
    order.merge(stats)
    table = no_states(order).table()
    mean = (3 * torch.tensor(2.0).exp() + 1) / 4
    assert table.value[3:6].tolist() == pytest.approx([float(mean.log() / 2)] * 3, abs=1e-6)
    assert table.support[3:6].tolist() == [4.0] * 3
    assert float(table.support.sum()) == 12
    merged = no_phases(order).table()
    assert merged.value.view(2, 2, 3)[1].equal(merged.value.view(2, 2, 3)[0])
    assert merged.value[3] == pytest.approx(1.0, abs=1e-6)
    assert merged.support[[3, 9]].tolist() == [3.0, 3.0]
    one = taught(dprm.Order(phases=1, bins=4), 3, share=0.7)
    assert no_phases(one) is None
    assert no_states(one) is None
    assert {NO_STATES, NO_PHASES} <= set(ablations(order))


def test_of_a_head_counts_alone_are_how_often_a_cell_was_compared():
    features = len(names(1, 4))
    counts = torch.arange(16)
    head = Head(torch.ones(features), counts=counts)
    policy = dprm.Order(phases=2, bins=8, ready=1).policy()
    order = dprm.Order.from_policy(replace(policy, head=head, table=support_of(head, policy.cells)))
    counted = count_only(order)
    table = counted.table()
    assert counted.policy().head is None
    assert bool((table.value[2:].diff() > 0).all())
    assert float(table.value[counts > 0].std(correction=0)) == pytest.approx(1.0, abs=1e-6)
    assert float(table.value[0]) == 0.0
