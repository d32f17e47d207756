"""Post-training: it raises the reward, treats its arms alike, and resumes to the same bits."""

import json

import pytest
import torch

from dprm.train.posttraining import ARMS, PostTraining, deployed, order_of
from dprm.train.recipe import Recipe
from dprm.train.rollouts import Plan
from tests.train.wishes import MASK, Wishes, beginner

GATE = {"warm": 1, "switch": 2, "ready": 8}


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def post_training(folder, arm, plan=None, order=None, answers=4, **changes):
    recipe = Recipe(**{"steps": 14, "warm": 2, "rate": 3e-3, "decay": 0.0, "average": 0.9, "log_every": 1, **changes})
    plan = plan or Plan(prompts=4, generations=4, reuse=4, replicates=2, bounds=2, seed=5)
    return PostTraining(beginner(), Wishes(answers), arm, order or order_of(arm, **GATE), plan, recipe, folder)


def log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("arm", "killed_at", "sync"),
    [("random", 6, 0), ("confidence-progressive", 4, 2), ("dprm-progressive", 4, 0), ("dprm-progressive", 10, 2)],
)
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, arm, killed_at, sync):
    plan = Plan(prompts=4, generations=4, reuse=4, replicates=2, bounds=2, sync=sync, seed=5)
    whole = post_training(tmp_path / "whole", arm, plan)
    whole.run()
    first = post_training(tmp_path / "parts", arm, plan)
    first.run(until=killed_at)
    first.save()
    first.run(until=12)  # What is lost in the kill.
    second = post_training(tmp_path / "parts", arm, plan)
    assert second.step == killed_at
    second.run()
    for kind in ("model", "average"):
        expected = dict(getattr(whole, kind).named_parameters())
        for name, weight in getattr(second, kind).named_parameters():
            assert torch.equal(weight, expected[name]), f"{kind} {name}"
    assert second.rollouts.order.policy().digest == whole.rollouts.order.policy().digest
    assert log(tmp_path / "whole") == log(tmp_path / "parts")


@pytest.mark.parametrize("arm", ARMS)
def test_it_learns_to_grant_the_wish(tmp_path, arm):
    run = post_training(tmp_path, arm, Plan(prompts=10, generations=8, reuse=4), answers=2, steps=200, rate=1e-3)
    before = beginner().state_dict()
    run.run()
    earned = [line["reward"] for line in log(tmp_path) if "reward" in line]
    assert len(earned) == 50
    assert sum(earned[:5]) / 5 < 0.35
    assert sum(earned[-5:]) / 5 > 0.5
    start = run.rollouts.reference.model.state_dict()
    assert all(torch.equal(start[name], weight) for name, weight in before.items())


def test_arms_see_the_same_prompts_and_make_the_same_number_of_updates(tmp_path):
    asked = {}
    for arm in ARMS:
        run = post_training(tmp_path / arm, arm)
        prompts = asked.setdefault(arm, [])
        real = run.rollouts.prompts.draw
        run.rollouts.prompts.draw = lambda refresh, count, real=real, prompts=prompts: (
            prompts.append(real(refresh, count)[0].tolist()) or real(refresh, count)
        )
        run.run()
        assert run.step == 14
    assert asked["random"] == asked["confidence-progressive"] == asked["dprm-progressive"]
    assert len(asked["random"]) == 4


def test_prompts_that_teach_nothing_leave_the_weights_where_they_are(tmp_path):
    class Indifferent(Wishes):
        def reward(self, index, tokens):
            return torch.full((len(index),), 0.1, dtype=torch.float64)

    recipe = Recipe(steps=5, warm=1, decay=0.0)
    plan = Plan(prompts=2, generations=4, reuse=2)
    run = PostTraining(beginner(), Indifferent(), "random", order_of("random"), plan, recipe, tmp_path)
    run.run()
    start = beginner().state_dict()
    assert all(torch.equal(start[name], weight) for name, weight in run.model.state_dict().items())


def test_a_deployed_order_has_its_full_gate_and_draws_nothing_without_evidence(tmp_path):
    run = post_training(tmp_path, "dprm-progressive", order=order_of("dprm-progressive", warm=1, switch=500))
    run.run(until=9)
    order = deployed(run.rollouts.order)
    assert run.rollouts.order.step == 3
    assert order.gate.ramp(order.step) == 1.0
    assert not order.explore
    assert deployed(order_of("random")).stats is None
    assert torch.equal(order.table().value, run.rollouts.order.table().value)


def test_bad_arms_are_named(tmp_path):
    with pytest.raises(ValueError, match="arm is 'greedy'"):
        order_of("greedy")
    with pytest.raises(ValueError, match="never leaves the host's order"):
        order_of("dprm-progressive", rule="top_m")
    run = post_training(tmp_path / "used", "dprm-progressive")
    run.run(until=1)
    with pytest.raises(ValueError, match="order has observed rewards already"):
        post_training(tmp_path / "new", "dprm-progressive", order=run.rollouts.order)


def test_a_checkpoint_of_another_plan_is_refused(tmp_path):
    post_training(tmp_path, "random").run()
    with pytest.raises(ValueError, match=r"holds rollouts \(4, 4\), the plan is \(4, 8\)"):
        post_training(tmp_path, "random", Plan(prompts=4, generations=8))


def test_a_time_limit_becomes_a_number_of_updates(tmp_path):
    run = post_training(tmp_path, "random", steps=None, minutes=0.01, warm=8)
    run.run()
    assert run.step == run.steps > 8


def test_the_answer_never_holds_a_mask(tmp_path):
    run = post_training(tmp_path, "dprm-progressive")
    assert not bool((run.rollouts.canvases(0).clean == MASK).any())
