"""The DMPO study: arms at equal updates, pass@K by part, and the same card after a kill."""

import json
from dataclasses import replace

import pytest
import torch

from dprm.hosts.dmpo.passing import CONTRASTS, START, START_BY_SHORTLIST, Passing
from dprm.hosts.dmpo.study import Setting, study
from dprm.train.posttraining import ARMS
from dprm.train.task import task_of
from dprm.train.training import Training
from dprm.train.transformer import Transformer

SMALL = replace(Setting(updates=9, sizes=(4, 5), width=14).rehearsal(), samples=2, checked=2)


def rehearse(folder, setting=SMALL):
    return study(Transformer(task_of("dmpo").shaped(32, 1)), setting, folder=folder, resamples=20)


def test_a_study_gives_weights_successes_and_a_card(tmp_path):
    card = rehearse(tmp_path)
    names = {f"{arm}.safetensors" for arm in ARMS} | {"dprm.policy", "success.safetensors", "setting.json"}
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == names
    updates = {arm: facts["updates"] for arm, facts in card.arms.items()}
    starts = {START, START_BY_SHORTLIST}
    assert updates == {**dict.fromkeys(starts, 0), **dict.fromkeys(set(card.passk) - starts, 9)}
    assert set(ARMS) < set(card.passk)
    assert set(card.passk["start"]) == {"4", "5", "all", "hard"}
    assert set(card.passk["start"]["hard"]["first"]) == {"1", "2", "mean"}
    assert set(card.differences[0]) == {"treated", "control", "part", "first", "unbiased"}
    assert len(card.differences) == 4 * len(CONTRASTS)
    assert card.problems.keys() == {"4", "5"}
    assert card.count == 4
    with pytest.raises(ValueError, match="was begun with another setting"):
        rehearse(tmp_path, replace(SMALL, seed=1))


def test_a_killed_study_ends_in_the_same_card(tmp_path, monkeypatch):
    whole = rehearse(tmp_path / "whole")
    update, calls = Training._update, []

    def counted(self):
        calls.append(0)
        if len(calls) == 13:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Training, "_update", counted)
    with pytest.raises(KeyboardInterrupt):
        rehearse(tmp_path / "cut")
    again = rehearse(tmp_path / "cut")
    assert json.loads(again.to_json()) == json.loads(whole.to_json())
    # The first arm was done and is not trained again; the second starts anew, as it had no checkpoint yet.
    assert len(calls) == 13 + 2 * 9


def test_hard_problems_are_outside_of_post_training():
    setting = Setting(updates=1)
    assert set(setting.stock) == {3, 4}
    assert setting.sizes == (3, 4, 5, 6)
    assert setting.split == "test"
    assert setting.temperature == 1.0


def test_the_gate_opens_in_the_first_half_whatever_the_number_of_updates():
    order = Setting(updates=800).order("dprm-progressive", 10)
    assert (order.gate.warm, order.gate.switch) == (10, 40)
    assert Setting(minutes=1).order("dprm-progressive", 10).gate.warm == 40


def test_updates_or_minutes():
    with pytest.raises(ValueError, match="updates is 3 and minutes is 1: expected exactly one of them"):
        Setting(updates=3, minutes=1)
    with pytest.raises(ValueError, match="updates is None and minutes is None"):
        Setting()


def test_pass_at_k_is_that_of_the_successes(tmp_path):
    passing = Passing(replace(SMALL, sizes=(4, 5, 6)), tmp_path, 8)
    nothing, everything, half = torch.zeros(2, 2), torch.ones(2, 2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    for name in {name for pair in CONTRASTS for name in pair}:
        for size, success in ((4, everything), (5, nothing), (6, half if name == "random" else nothing)):
            passing.found[f"{name}|{size}"] = success.to(torch.uint8)
    table = passing.tables()["random"]
    assert table["4"]["first"] == {"1": 1.0, "2": 1.0, "mean": 1.0}
    assert table["6"]["first"] == {"1": 0.0, "2": 1.0, "mean": 0.5}
    assert table["6"]["unbiased"] == {"1": 0.5, "2": 1.0, "mean": 0.75}
    assert table["hard"]["unbiased"]["mean"] == 0.375
    assert table["all"]["unbiased"]["mean"] == pytest.approx(0.75 / 3 + 1 / 3)
    found = {
        (entry["treated"], entry["control"], entry["part"]): entry["unbiased"]["estimate"]
        for entry in passing.differences(20)
    }
    assert found["random", START, "hard"] == 0.375
    assert found["dprm-progressive", "random", "hard"] == -0.375
    assert found["dprm-progressive", START, "hard"] == 0.0
    assert json.dumps(passing.results(20))
    assert passing.names[0] == START
