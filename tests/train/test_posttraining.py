"""Post-training: rollouts as a mask law and WDCE as the objective of the one loop. It raises the reward and resumes."""

import json
from dataclasses import replace

import pytest
import torch

import dprm
from dprm.order import Gate
from dprm.train.learner import deployed, learner
from dprm.train.recipe import Recipe
from dprm.train.rollouts import RolloutPlan, Rollouts
from dprm.train.training import Training
from dprm.train.wdce import Wdce
from tests.train.wishes import MASK, Indifferent, Wishes, beginner

ARMS = ("random", "confidence-progressive", "dprm-progressive")
PLAN = RolloutPlan(prompts=4, generations=4, reuse=4, replicates=2, bounds=2, seed=5)


def post_training(folder, arm, plan=PLAN, host=None, order=None, objective=None, **changes):
    recipe = Recipe(**{"steps": 14, "warm": 2, "rate": 3e-3, "decay": 0.0, "average": 0.9, "log_every": 1, **changes})
    host, model = host or Wishes(), beginner()
    if order is None:
        order = learner(host, Gate(1, 2, 8)) if arm == "dprm-progressive" else dprm.Order()
    law = Rollouts(model, host, host.problems("train", 20), order, plan, shuffled=arm == "random")
    return Training(model, law, recipe, folder, objective=objective or Wdce())


def log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("arm", "killed_at", "sync"),
    [("random", 6, 0), ("confidence-progressive", 4, 2), ("dprm-progressive", 4, 0), ("dprm-progressive", 10, 2)],
)
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, arm, killed_at, sync):
    plan = replace(PLAN, sync=sync)
    whole = post_training(tmp_path / "whole", arm, plan)
    whole.run()
    first = post_training(tmp_path / "parts", arm, plan)
    first.run(until=killed_at)
    first.save()
    first.run(until=12)  # What is lost in the kill.
    second = post_training(tmp_path / "parts", arm, plan)
    assert second.step == killed_at
    second.run()
    models = {"model": (whole.model, second.model), "average": (whole.average, second.average)}
    models["reference"] = whole.law.reference.model, second.law.reference.model
    for kind, (expected, resumed) in models.items():
        for name, weight in resumed.state_dict().items():
            assert torch.equal(weight, expected.state_dict()[name]), f"{kind} {name}"
    assert (sync == 0) == all(torch.equal(*pair) for pair in zip(models["reference"][0].parameters(), start()))
    assert second.law.order.policy().digest == whole.law.order.policy().digest
    assert log(tmp_path / "whole") == log(tmp_path / "parts")


def start():
    return beginner().parameters()


@pytest.mark.parametrize("arm", ARMS)
def test_it_learns_to_grant_the_wish(tmp_path, arm):
    plan = RolloutPlan(prompts=10, generations=8, reuse=4)
    run = post_training(tmp_path, arm, plan, Wishes(answers=2), steps=200, rate=1e-3)
    run.run()
    earned = [line["reward"] for line in log(tmp_path) if "reward" in line]
    assert len(earned) == 50
    assert sum(earned[:5]) / 5 < 0.35
    assert sum(earned[-5:]) / 5 > 0.5
    assert all(torch.equal(*pair) for pair in zip(run.law.reference.model.parameters(), start()))


def test_prompts_that_teach_nothing_leave_the_weights_where_they_are(tmp_path):
    run = post_training(tmp_path, "random", replace(PLAN, prompts=2, reuse=2), Indifferent(), steps=5, warm=1)
    run.run()
    assert all(torch.equal(*pair) for pair in zip(run.model.parameters(), start()))


def test_a_deployed_order_has_its_full_gate_and_draws_nothing_without_evidence(tmp_path):
    run = post_training(tmp_path, "dprm-progressive", order=learner(Wishes(), Gate(1, 500, 8)))
    run.run(until=9)
    order = dprm.Order.from_policy(deployed(run.law.order))
    assert run.law.order.step == 3
    assert order.gate.ramp(order.step) == 1.0
    assert not order.explore
    assert torch.equal(order.table().value, run.law.order.table().value)
    assert dprm.Order.from_policy(deployed(dprm.Order())).stats is None


def test_a_policy_can_be_deployed_with_a_gate_of_its_own():
    policy = deployed(learner(Wishes(), Gate(4, 16, 64)), Gate(0, 8, 2), host="wishes")
    assert (policy.gate, policy.step, policy.notes) == (Gate(0, 8, 2), 8, {"host": "wishes"})


def test_orders_that_cannot_learn_are_named(tmp_path):
    with pytest.raises(ValueError, match="never leaves the host's order"):
        learner(Wishes(), Gate(), rule="top_m")
    run = post_training(tmp_path / "used", "dprm-progressive")
    run.run(until=1)
    with pytest.raises(ValueError, match="order has observed rewards already"):
        post_training(tmp_path / "new", "dprm-progressive", order=run.law.order)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"plan": replace(PLAN, generations=8)}, "law.plan.generations is 4 there and 8 here"),
        ({"plan": replace(PLAN, sync=2)}, "law.plan.sync is 0 there and 2 here"),
        ({"arm": "random"}, "law.shuffled is False there and True here"),
        ({"order": dprm.Order(signal="margin")}, "law.order.signal.*margin"),
        ({"host": Wishes(answers=5)}, "law.problems is"),
        (
            {"host": Wishes().with_decoding(temperature=0.5)},
            r"law\.decoding\.1\.temperature is 1\.0 there and 0\.5 here",
        ),
        ({"objective": Wdce(negative=0.5)}, r"objective\.1\.negative is 1\.0 there and 0\.5 here"),
        ({"seed": 3}, "recipe.seed is 0 there and 3 here"),
    ],
)
def test_a_checkpoint_of_another_post_training_is_refused(tmp_path, changes, named):
    post_training(tmp_path, "confidence-progressive", steps=2).run()
    with pytest.raises(ValueError, match=f"belongs to another training: .*{named}"):
        post_training(tmp_path, **{"arm": "confidence-progressive", "steps": 2, **changes})


def test_a_time_limit_becomes_a_number_of_updates(tmp_path):
    run = post_training(tmp_path, "random", steps=None, minutes=0.01, warm=8)
    run.run()
    assert run.step == run.steps > 8


def test_the_answer_never_holds_a_mask(tmp_path):
    run = post_training(tmp_path, "dprm-progressive")
    assert not bool((run.law.canvases(0).clean == MASK).any())
