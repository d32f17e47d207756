"""The PUMA study: every arm, order and width on the same problems, and the same card after a kill."""

import json
from dataclasses import replace

import pytest
import torch

from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.study import Study, judged_again
from dprm.evaluate.trainings import study
from dprm.host.rollout import Decode
from dprm.hosts import task_of, trainings_of
from dprm.train.train import LAWS
from tests.hosts.puma.arms import arm_files, write_arm

# Grids with so many clues are decoded at once.
EASY = {"difficulty": "77-78", "limit": 4, "rows": 2, "resamples": 50}
SIGNALS = ("random", "confidence", "entropy")


def judged(files, folder, host="puma", orders=SIGNALS, widths=(1, 2, 3), **how):
    trainings = replace(trainings_of(host), orders=orders, widths=widths)
    return study(host, task_of(host), trainings, files, folder=folder, **{**EASY, **how})


def without_time(card):
    data = json.loads(card.to_json())
    for entry in data["results"]:
        assert entry.pop("seconds") >= 0
        del entry["time_ratio"]
    return data


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return arm_files(tmp_path_factory.mktemp("arms"))


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    return judged(files, tmp_path_factory.mktemp("whole"), command="me")


def test_a_card_holds_every_condition_its_differences_and_its_audit(whole, tmp_path):
    card, outcomes = whole
    assert (card.host, card.variant, card.split, card.count, card.command) == ("puma", "77-78", "select", 4, "me")
    conditions = {(entry["arm"], entry["order"], entry["width"]) for entry in card.results}
    assert conditions == {(law, order, width) for law in LAWS for order in SIGNALS for width in (1, 2, 3)}
    assert sum(entry["over"] == "order" for entry in card.differences) == 27
    assert sum(entry["over"] == "training" for entry in card.differences) == 27
    assert len(card.audit) == 27
    calls = {(entry["width"], entry["nfe"]) for entry in card.results}
    assert len(calls) == 3, "conditions of one width make the same number of model calls"
    # What an order has no place for is not audited.
    assert all("first_number" not in entry for entry in card.audit)
    assert len({arm["weights"] for arm in card.arms.values()}) == 3
    card.save(tmp_path / "card.json", outcomes)
    assert Study.load(tmp_path / "card.json") == card
    again = judged_again(card, Outcomes.load(tmp_path / "card.outcomes.npz"))
    assert json.loads(again.to_json()) == json.loads(card.to_json())


def test_the_host_order_has_no_difference_to_itself_in_the_audit(whole):
    for entry in whole[0].audit:
        assert ("delta" in entry["adjacency"]) == (entry["order"] != "confidence")


def test_the_random_order_of_all_arms_is_the_same(whole):
    audits = [entry for entry in whole[0].audit if entry["order"] == "random" and entry["width"] == 1]
    assert len(audits) == 3
    for statistic in ("adjacency", "span", "backfill"):
        assert len({entry[statistic]["mean"] for entry in audits}) == 1


def test_what_a_training_learned_is_decoded_after_that_training_alone(files, tmp_path):
    orders = ("confidence", "learned top_m", "learned soft_bon", "empty soft_bon")
    card, _ = judged(files, tmp_path, orders=orders, widths=(2,))
    decoded_by = {law: [entry["order"] for entry in card.results if entry["arm"] == law] for law in LAWS}
    assert decoded_by["random"] == decoded_by["confidence"] == ["confidence", "empty soft_bon"]
    assert decoded_by["dprm"] == list(orders)
    # The first learned order is also set beside all that other trainings were decoded by.
    both = [entry for entry in card.differences if entry["over"] == "both"]
    assert {entry["treated"] for entry in both} == {"dprm by learned top_m"}
    assert {entry["control"] for entry in both} == {
        f"{law} by {order}" for law in ("random", "confidence") for order in ("confidence", "empty soft_bon")
    }


def test_a_killed_study_ends_in_the_same_card(files, whole, tmp_path, monkeypatch):
    # So that every batch is written down.
    monkeypatch.setattr("dprm.host.decoded._SAVED_EVERY", -1.0)
    answer, batches = Decode.answer, []

    def counted(self, host, problems, *others):
        batches.append(len(problems))
        if len(batches) == 20:
            raise KeyboardInterrupt
        return answer(self, host, problems, *others)

    monkeypatch.setattr(Decode, "answer", counted)
    with pytest.raises(KeyboardInterrupt):
        judged(files, tmp_path, command="me")
    again, _ = judged(files, tmp_path, command="me")
    # 27 conditions of 2 batches; the batch that was cut is decoded again, 19 are kept.
    assert len(batches) == 20 + 54 - 19
    assert without_time(again) == without_time(whole[0])


def test_only_weights_that_changed_are_decoded_anew(tmp_path, monkeypatch):
    files = arm_files(tmp_path)
    how = {"folder": tmp_path / "work", "orders": ("confidence",), "widths": (1,)}
    judged(files, **how)
    answer, answered = Decode.answer, []

    def noted(self, host, problems, *others):
        answered.append((host.weights, len(problems)))
        return answer(self, host, problems, *others)

    monkeypatch.setattr(Decode, "answer", noted)
    write_arm(files["random"], "random", seed=9)
    card, _ = judged(files, **how)
    assert answered == [(card.arms["random"]["weights"], 2)] * 2


def test_decode_seeds_are_averaged_problem_by_problem(files, tmp_path):
    orders = {"orders": ("random",), "widths": (1,)}
    card, outcomes = judged(files, tmp_path, seeds=2, **orders)
    assert card.seeds == [0, 1]
    name = "random by random, 1 a step"
    assert outcomes.scores[name].shape == (2, 4, 2)
    (entry,) = [entry for entry in card.results if entry["arm"] == "random"]
    assert entry["solved"] == pytest.approx(float(outcomes.scores[name][..., 1].mean()))
    assert "spread" in entry


def test_word_problems_are_audited_for_when_numbers_come(tmp_path):
    files = arm_files(tmp_path, "puma_words")
    card, _ = judged(files, tmp_path, "puma_words", widths=(12,), limit=2, resamples=10, difficulty=None)
    assert len(card.results) == 9
    assert any("first_number" in entry for entry in card.audit)


def test_differences_are_treated_minus_control():
    solved = {
        ("random", "confidence"): [0.0, 0.0, 0.0, 1.0],
        ("random", "entropy"): [0.0, 0.0, 1.0, 1.0],
        ("dprm", "confidence"): [1.0, 1.0, 1.0, 1.0],
        ("dprm", "entropy"): [1.0, 0.0, 1.0, 1.0],
    }
    scores = {
        f"{arm} by {order}, 1 a step": torch.tensor(won).view(1, 4, 1).repeat(1, 1, 2)
        for (arm, order), won in solved.items()
    }
    nfe = {name: torch.ones(1, 4, dtype=torch.int64) for name in scores}
    price = {"width": 1, "calls": {"denoiser": 1.0}, "seconds": 1.0}
    card = Study(
        host="puma",
        split="test",
        problems={},
        count=4,
        seed=0,
        resamples=100,
        arms={},
        results=[{"arm": arm, "order": order, **price} for arm, order in solved],
        differences=[],
        command="",
        notes={"usual": "confidence"},
        parts={"all": [0, 4]},
    )
    card = judged_again(card, Outcomes(torch.arange(4), torch.arange(4), scores, nfe))
    found = {
        (entry["over"], entry["treated"], entry["control"], entry.get("arm", entry.get("order"))): entry["estimate"]
        for entry in card.differences
    }
    assert found == {
        ("order", "entropy", "confidence", "random"): 0.25,
        ("order", "entropy", "confidence", "dprm"): -0.25,
        ("training", "dprm", "random", "confidence"): 0.75,
        ("training", "dprm", "random", "entropy"): 0.25,
    }
    assert card.passk == {}


def test_what_cannot_be_posed_is_refused_before_any_work(files, tmp_path):
    with pytest.raises(ValueError, match="difficulty is 'easy'"):
        judged(files, tmp_path / "work", difficulty="easy")
    with pytest.raises(ValueError, match="split is 'exam'"):
        judged(files, tmp_path / "work", split="exam")
    assert not (tmp_path / "work").exists()
