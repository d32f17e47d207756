"""Rollouts, their rewards, and what a trainer logs, keeps and resumes."""

import math
from types import SimpleNamespace

import pytest
import torch
from transformers.trainer_callback import CallbackHandler, TrainerCallback, TrainerControl, TrainerState

import dprm
from dprm.contrib import dmpo
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.contrib.trainer_callback import FILE, OrderCallback
from dprm.contrib.training import Observer, write
from dprm.fit.events import Events
from tests.contrib import upstreams
from tests.contrib.engines import MASK, VOCABULARY, as_on_an_accelerator, states

NET = upstreams.Net()


def made():
    observer = Observer()
    return observer, Selector(None, mask_id=MASK, vocabulary=VOCABULARY, explore=True, traces=observer)


def rollout(trainer, seed=0, calls=2):
    """Two calls of the sampler, as a trainer that generates in small batches makes them."""
    outputs = []
    for call in range(calls):
        _, x = states(seed + call)
        outputs.append(trainer.generate(model=NET, prompt=x, steps=4))
    return torch.cat(outputs)


def reward_of(prompts, completions, **named):
    """The share of threes."""
    return [float((row == 3).double().mean()) for row in completions]


def trained(rounds=3, observer=None, selector=None):
    if selector is None:
        observer, selector = made()
    trainer = SimpleNamespace(generate=upstreams.generate)
    reward = observer.rewarding(reward_of)
    with dmpo.attached(trainer, selector):
        for turn in range(rounds):
            answers = rollout(trainer, 2 * turn)
            rewards = reward(prompts=[f"p{row % 6}" for row in range(len(answers))], completions=answers)
            assert rewards == reward_of(None, answers)
    return observer, selector


def test_a_reward_function_feeds_the_order_it_was_rolled_out_with():
    observer, selector = trained()
    stats = selector.order.stats
    assert selector.order.step == 3
    assert selector.order.baseline == "prompt"
    masked = sum(int((states(seed)[1] == MASK).sum()) for seed in range(6))
    assert int(stats.count.sum()) == masked
    # T counts a rollout once in a cell.
    assert stats.trajectories.sum() <= stats.count.sum()
    assert observer.rewarding(reward_of).__name__ == "reward_of"
    assert not selector.silent


def test_what_is_learned_is_what_observing_by_hand_gives():
    observer, selector = made()
    x, before = states(0)
    masked = before == MASK
    sure = x.softmax(-1).amax(-1)
    own = torch.zeros_like(masked)
    own[torch.arange(6), torch.where(masked, sure, -1.0).argmax(1)] = True
    names = [f"r{row}" for row in range(6)]
    chosen = selector.select(own, sure, masked, Requests.begin(names, masked))
    observer.observe([0.0, 1.0, 0.5, 0.25, 1.0, 0.0], list("aabbcc"))
    order = dprm.Order()
    cell = order.cells.index(0, torch.where(masked, sure, 0.0), None)[chosen]
    reward = torch.tensor([0.0, 1.0, 0.5, 0.25, 1.0, 0.0])
    order.observe(Events(6, torch.arange(6), cell.long()), reward, torch.tensor([0, 0, 1, 1, 2, 2]))
    assert selector.order.stats == order.stats


def test_no_wait_is_added_to_a_rollout_that_is_observed(monkeypatch):
    _, selector = made()
    trainer, (_, x) = SimpleNamespace(generate=upstreams.generate), states(0)
    counts = []
    with as_on_an_accelerator(monkeypatch) as counted:
        trainer.generate(model=NET, prompt=x, steps=4)
    counts.append(counted.count)
    with dmpo.attached(trainer, selector):
        trainer.generate(model=NET, prompt=x, steps=4)
        with as_on_an_accelerator(monkeypatch) as counted:
            trainer.generate(model=NET, prompt=x, steps=4)
    counts.append(counted.count)
    assert counts[1] == counts[0]


def test_too_few_rewards_are_an_error_and_nothing_is_lost():
    observer, selector = made()
    trainer = SimpleNamespace(generate=upstreams.generate)
    with dmpo.attached(trainer, selector):
        rollout(trainer)
    with pytest.raises(ValueError, match="rewards has 3 rows: expected 12, one for each rollout recorded"):
        observer.observe([0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match=r"reward.row 11. is 7\.0: outside the declared reward_range"):
        observer.observe([0.0] * 11 + [7.0])
    observer.observe([0.5] * 12)
    assert int(selector.order.stats.count.sum()) > 0
    with pytest.raises(ValueError, match="this observer belongs to no Selector"):
        Observer().observe([])


def test_facts_say_what_was_selected():
    observer, selector = trained(1)
    first = observer.facts()
    assert first["dprm/readiness"] == 0.0
    assert 0 < first["dprm/order_change"] <= 1
    assert first["dprm/radius"] > 0
    assert first["dprm/drift"] == 0.0
    assert observer.facts() == {}
    trained(2, observer, selector)
    later = observer.facts()
    assert later["dprm/gate"] > 0
    assert later["dprm/drift"] > 0
    assert 0 <= later["dprm/late_low"] <= 1
    for name, value in later.items():
        if "cross_entropy" in name:
            number = int(name[-2:])
            # The mean of −log confidence lies in its bin.
            assert -math.log((number + 1) / 16) - 1e-6 <= value <= (-math.log(number / 16) if number else 30)


class Seen(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **named):
        self.logs = dict(logs)


def test_a_trainer_logs_keeps_and_resumes_the_order(tmp_path):
    observer, selector = trained(2)
    seen, args = Seen(), SimpleNamespace(output_dir=str(tmp_path))
    handler = CallbackHandler([seen], None, None, None, None)
    state, control = TrainerState(), TrainerControl()
    OrderCallback(selector, observer).attach(SimpleNamespace(callback_handler=handler))
    handler.on_train_begin(args, state, control)
    handler.on_log(args, state, control, {"loss": 1.0})
    assert seen.logs["loss"] == 1.0
    assert "dprm/order_change" in seen.logs
    state.global_step = 10
    state.is_world_process_zero = True
    handler.on_save(args, state, control)
    path = tmp_path / "checkpoint-10" / FILE
    assert path.is_file()
    other, again = made()
    OrderCallback(again, other).on_train_begin(args, state, control)
    assert again.order.stats == selector.order.stats
    trained(1, observer, selector)
    trained(1, other, again)
    assert again.order.policy().digest == selector.order.policy().digest
    state.global_step = 20
    with pytest.raises(ValueError, match=f"checkpoint-20/{FILE} is not there"):
        OrderCallback(again, other).on_train_begin(args, state, control)


def test_numbers_go_to_weights_and_biases_or_tensorboard():
    got = []
    run = SimpleNamespace(log=lambda facts, step: got.append((facts, step)))
    board = SimpleNamespace(add_scalar=lambda name, value, step: got.append((name, value, step)))
    write({"dprm/radius": 0.5}, 3, run)
    write({"dprm/radius": 0.5}, 3, board)
    write({}, 4, run)
    assert got == [({"dprm/radius": 0.5}, 3), ("dprm/radius", 0.5, 3)]


def test_processes_act_on_the_sum_of_what_all_have_seen(monkeypatch):
    """Two processes in one: a reduction adds what the other has seen."""
    (first, one), (second, other), (both, alone) = made(), made(), made()
    for observer, selector, seeds in ((first, one, [0]), (second, other, [1]), (both, alone, [0, 1])):
        trainer = SimpleNamespace(generate=upstreams.generate)
        with dmpo.attached(trainer, selector):
            answers = torch.cat([rollout(trainer, seed, calls=1) for seed in seeds])
        rewards = (torch.arange(len(answers)) + 6 * (observer is second)).double() / 12
        prompts = [f"{seed}-{row % 3}" for seed in seeds for row in range(6)]
        observer.told = rewards, prompts
    both.observe(*both.told)
    first.observe(*first.told)
    seen = one.order.stats
    reduced = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(dprm.Stats, "all_reduce", lambda self: reduced.append(self._keep((self + seen).moments)))
    second.observe(*second.told)
    assert len(reduced) == 1
    # Under the names of another process other numbers are drawn: the cells may differ, the sum may not.
    assert int(other.order.stats.count.sum()) == int(alone.order.stats.count.sum())
    assert other.order.step == 1
