"""Observing: credit, baselines, online, frozen and mixed use."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order import Policy
from tests.draws import RULES, candidates, logits, seeds


def episode(order, seed, rows=6, length=10, steps=3):
    """A few decisions on fixed readings; returns the choices."""
    flags, choices = torch.ones(rows, length, dtype=torch.bool), []
    for step in range(steps):
        choice = order.select(dprm.read(logits(seed + step, rows, length, 5)), flags, 2, step / steps, seed=seed)
        flags = flags & ~choice.mask
        choices.append(choice)
    return choices


def test_observe_credits_the_cells_captured_at_selection():
    order = dprm.Order(baseline="none", beta=2.0)
    choices = episode(order, 0)
    reward = torch.rand(6)
    order.observe(choices, reward)
    expected = dprm.Stats(order.cells, 2.0)
    for row in range(6):
        cell = torch.cat([choice.cell[row][choice.mask[row]] for choice in choices])
        expected.add(cell, reward[row].repeat(len(cell)), trajectory=torch.zeros_like(cell))
    assert order.stats == expected
    assert order.step == 1


@given(seed=seeds, shift=st.sampled_from([-3.0, -0.5, 0.25, 10.0]), baseline=st.sampled_from(["global", "prompt"]))
def test_adding_a_constant_to_the_reward_leaves_the_order_unchanged(seed, shift, baseline):
    reward = torch.rand(6, generator=torch.Generator().manual_seed(seed))
    group = torch.tensor([0, 0, 1, 1, 1, 2])
    masks = []
    for c in (0.0, shift):
        order = dprm.Order(baseline=baseline, beta=2.0, ready=1, reward_range=(c, 1.0 + c))
        order.observe(episode(order, seed), reward.double() + c, group=group)
        masks.append(torch.stack([choice.mask for choice in episode(order, seed)]))
    assert torch.equal(*masks)


def test_without_a_baseline_a_constant_does_change_the_order():
    """Why there is one: rewards in [0, 1] promote every visited cell over every unvisited one."""
    confidence = torch.tensor([[0.60, 0.90]])
    reading = dprm.Reading(torch.zeros(1, 2, dtype=torch.int64), confidence, confidence, confidence)
    every, only_first = torch.ones(1, 2, dtype=torch.bool), torch.tensor([[True, False]])
    picks = []
    for baseline in ("none", "global"):
        order = dprm.Order(baseline=baseline, ready=1)
        order.observe(order.select(reading, only_first, 1, 0.0), torch.tensor([0.5]))
        picks.append(int(order.select(reading, every, 1, 0.0).mask.int().argmax()))
    assert picks == [0, 1]


def test_prompt_baseline_does_not_mistake_easy_prompts_for_good_decisions():
    """A cell that is visited in easy prompts only has value 0 if nothing inside a prompt depends on it."""
    easy, hard = torch.tensor([[0.95]]), torch.tensor([[0.15]])
    orders = {name: dprm.Order(baseline=name, ready=1) for name in ("global", "prompt")}
    for name, order in orders.items():
        rows = torch.cat([easy, easy, hard, hard])
        reading = dprm.Reading(torch.zeros(4, 1, dtype=torch.int64), rows, rows, rows)
        choice = order.select(reading, torch.ones(4, 1, dtype=torch.bool), 1, 0.0)
        order.observe(choice, torch.tensor([1.0, 1.0, 0.0, 0.0]), group=torch.tensor([7, 7, 3, 3]))
        value = order.table().value[choice.cell[:, 0]]
        assert (value[0] - value[2] > 0.4) if name == "global" else (value.abs() < 1e-9).all()


@given(seed=seeds)
def test_the_order_of_rows_does_not_change_what_is_learned(seed):
    generator = torch.Generator().manual_seed(seed)
    reward, group = torch.rand(6, generator=generator), torch.randint(0, 3, (6,), generator=generator)
    permutation = torch.randperm(6, generator=generator)
    orders = [dprm.Order(), dprm.Order()]
    x = logits(seed, 6, 10, 5)
    every = torch.ones(6, 10, dtype=torch.bool)
    orders[0].observe(orders[0].select(dprm.read(x), every, 2, 0.5), reward, group=group)
    choice = orders[1].select(dprm.read(x[permutation]), every, 2, 0.5)
    orders[1].observe(choice, reward[permutation], group=group[permutation])
    assert orders[0].stats == orders[1].stats


def test_auto_takes_the_prompt_baseline_when_groups_are_given_and_stays_with_it():
    order = dprm.Order()
    order.observe(episode(order, 0), torch.rand(6), group=torch.arange(6) // 2)
    assert order.baseline == "prompt"
    with pytest.raises(ValueError, match="baseline is 'prompt': observe needs group"):
        order.observe(episode(order, 0), torch.rand(6))
    order = dprm.Order()
    order.observe(episode(order, 0), torch.rand(6))
    assert order.baseline == "global"
    before = order.stats.moments.clone()
    with pytest.raises(ValueError, match="group is given"):
        order.observe(episode(order, 0), torch.rand(6), group=torch.arange(6) // 2)
    assert torch.equal(order.stats.moments, before)


@pytest.mark.parametrize(
    ("reward", "group", "message"),
    [
        ([0.1, 0.2, float("nan"), 0, 0, 0], None, r"reward\[row 2\] is nan"),
        ([0.1, 0.2, 0.3, 0, 0, 1.5], None, r"reward\[row 5\] is 1.5"),
        ([0.1], None, "reward has 1 rows: expected 6"),
        ([0.1] * 6, [0, 1], r"group has shape \(2,\)"),
        ([[0.1] * 6], None, "reward has shape"),
    ],
)
def test_a_failed_observe_changes_nothing(reward, group, message):
    order = dprm.Order()
    order.observe(episode(order, 1), torch.rand(6), group=torch.arange(6) if group else None)
    before = (order.stats.moments.clone(), order.step, order.baseline)
    with pytest.raises(ValueError, match=message):
        order.observe(episode(order, 2), torch.tensor(reward), None if group is None else torch.tensor(group))
    assert torch.equal(order.stats.moments, before[0])
    assert (order.step, order.baseline) == before[1:]


def test_mixed_use_goes_on_learning_from_a_policy(tmp_path):
    whole = dprm.Order(baseline="global")
    first = dprm.Order(baseline="global")
    reward = torch.rand(6)
    for order in (whole, first):
        order.observe(episode(order, 3), reward)
    first.policy().save(tmp_path / "p")
    second = dprm.Order.from_policy(Policy.load(tmp_path / "p"))
    for order in (whole, second):
        order.observe(episode(order, 4), reward)
    assert second.stats == whole.stats
    assert second.step == 2


def test_a_policy_without_statistics_acts_but_does_not_learn():
    order = dprm.Order()
    order.observe(episode(order, 3), torch.rand(6))
    stored = order.policy()
    bare = Policy(**{**{name: getattr(stored, name) for name in stored.__dataclass_fields__}, "stats": None})
    frozen = dprm.Order.from_policy(bare)
    choices = episode(frozen, 3)
    with pytest.raises(ValueError, match="cannot learn on"):
        frozen.observe(choices, torch.rand(6))


@given(seed=seeds, rule=st.sampled_from(RULES))
def test_workers_that_exchange_what_they_flush_end_with_the_same_bits(seed, rule):
    alone = dprm.Order(rule=rule, explore=True, baseline="global")
    workers = [dprm.Order(rule=rule, explore=True, baseline="global") for _ in range(2)]
    for turn in range(3):
        deltas = []
        for index, worker in enumerate(workers):
            choices = episode(worker, seed + 10 * turn + index)
            reward = torch.rand(6, generator=torch.Generator().manual_seed(seed + turn + 99 * index))
            worker.observe(choices, reward)
            deltas.append(worker.flush())
        workers[0].merge(deltas[1])
        workers[1].merge(deltas[0])
        for delta in deltas:
            alone.merge(delta)
    assert workers[0].stats == workers[1].stats == alone.stats
    assert workers[0].flush() is None


def test_forgetting_lets_a_drifting_host_be_followed():
    steady, forgetful = dprm.Order(baseline="none"), dprm.Order(baseline="none", forget=0.2)
    for turn in range(60):
        for order in (steady, forgetful):
            order.observe(episode(order, 5), torch.full((6,), float(turn >= 40)))
    cell = steady.stats.count.argmax()
    assert steady.table().value[cell] < 0.5
    assert forgetful.table().value[cell] > 0.95


def test_forgetting_goes_on_after_a_policy_is_loaded(tmp_path):
    order = dprm.Order(baseline="none", forget=0.5)
    order.observe(episode(order, 5), torch.zeros(6))
    order.policy().save(tmp_path / "p")
    again = dprm.Order.from_policy(Policy.load(tmp_path / "p"))
    for one in (order, again):
        one.observe(episode(one, 5), torch.ones(6))
    assert again.stats == order.stats
    assert order.stats.sums[0].sum() < 2 * 36


@given(seed=seeds)
def test_a_richer_grid_pooled_over_aux_is_the_poorer_one(seed):
    reading, flags = dprm.read(logits(seed, 5, 8, 4)), candidates(seed, 5, 8)
    poor, rich = dprm.Order(baseline="none"), dprm.Order(baseline="none", aux=3)
    reward = torch.rand(5)
    poor.observe(poor.select(reading, flags, 2, 0.5), reward)
    rich.observe(rich.select(reading, flags, 2, 0.5, aux=torch.randint(0, 3, (5, 8))), reward)
    pooled = rich.stats.moments.view(8 * 16, 3, 4, 2).sum(1)
    # Events and rewards add up; one trajectory can be in several of the richer cells.
    assert torch.equal(pooled[:, :3], poor.stats.moments[:, :3])
    assert bool((pooled[:, 3] >= poor.stats.moments[:, 3]).all())
