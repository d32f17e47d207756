"""Algorithm 2 to the letter: canvases are walked by the order while it learns from the rollouts' rewards."""

import json

import pytest
import torch

import dprm
from dprm.order import Gate
from dprm.train import diary
from dprm.train.learner import learner
from dprm.train.letter import Letter
from dprm.train.masks import Canvases
from dprm.train.recipe import Recipe
from dprm.train.rollouts import RolloutPlan
from dprm.train.training import Training
from dprm.train.wdce import Wdce
from tests.train.wishes import MASK, Wishes, beginner

PLAN = RolloutPlan(prompts=3, generations=4, reuse=4, replicates=2, bounds=2, seed=5)


def training(folder, steps=12):
    host, model = Wishes(), beginner()
    order = learner(host, Gate(1, 4, 8), baseline="none")
    law = Letter(model, host, host.problems("train", 20), order, PLAN)
    recipe = Recipe(steps=steps, warm=2, rate=3e-3, decay=0.0, average=0.9, log_every=1)
    return Training(model, law, recipe, folder, objective=Wdce())


def test_every_refresh_begins_with_everything_masked_and_shows_equal_shares(tmp_path):
    run = training(tmp_path)
    law = run.law
    hidden = []
    for step in range(8):
        canvases = law.canvases(step)
        answers = (law._steps > 0).sum(1).repeat(2)
        hidden.append((canvases.masked.sum(1), answers))
        assert bool((canvases.masked.sum(1) > 0).all())
        assert torch.equal(canvases.clean[~canvases.masked], canvases.noisy[~canvases.masked])
        law.advance(step, run.model(canvases.noisy))
    for step, (masked, answers) in enumerate(hidden):
        shown = answers * (step % 4) // 4
        assert torch.equal(answers - masked, shown.minimum(answers - 1))


def test_what_is_shown_next_is_credited_with_the_rollouts_own_reward(tmp_path):
    run = training(tmp_path)
    law = run.law
    canvases = law.canvases(0)
    assert law.order.stats is None
    before = canvases.masked
    law.advance(0, run.model(canvases.noisy))
    moved = before & (law._noisy != MASK)
    assert int(law.order.stats.sums[0].sum()) == int(moved.sum()) > 0
    again = dprm.Stats(law.order.cells, 1.0)
    assert law.order.stats.reward_range == again.reward_range
    assert law.order.step == 1


def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    whole = training(tmp_path / "whole")
    whole.run()
    first = training(tmp_path / "parts")
    first.run(until=6)
    first.save()
    first.run(until=9)
    second = training(tmp_path / "parts")
    assert second.step == 6
    second.run()
    for name, weight in second.model.state_dict().items():
        assert torch.equal(weight, whole.model.state_dict()[name]), name
    assert second.law.order.policy().digest == whole.law.order.policy().digest
    assert (tmp_path / "whole/log.jsonl").read_text() == (tmp_path / "parts/log.jsonl").read_text()
    told = [json.loads(line) for line in (tmp_path / "whole/log.jsonl").read_text().splitlines()]
    refreshes = [entry for entry in told if "reward" in entry]
    assert len(refreshes) == 3
    assert {"spread", "late_low", "gradient", "entropy", "early"} <= refreshes[0].keys()
    assert {"radius", "drift"} <= refreshes[2].keys()


def test_the_diary_of_an_update_is_what_the_model_sees():
    clean = torch.tensor([[0, 1, 1]])
    masked = torch.tensor([[True, True, False]])
    logits = torch.tensor([[[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]]]).log()
    told = diary.of_update(logits, Canvases(clean, clean.masked_fill(masked, 2), masked), torch.tensor([3]))
    entropy = -(torch.tensor(0.9).log() + torch.tensor(0.1).log()) / 2
    assert told["entropy"] == pytest.approx(float(entropy), abs=1e-6)
    assert told["early"] == told["entropy"]
    norms = [(1 - 2 * p + 0.82) ** 0.5 for p in (0.9, 0.1)]
    assert told["gradient"] == pytest.approx(sum(norms) / 2, abs=1e-6)
    late = diary.of_update(logits, Canvases(clean, clean.masked_fill(masked, 2), masked), torch.tensor([5]))
    assert "early" not in late
