"""The DMPO study: arms at equal updates from one start, pass@K by part, and the same card after a kill."""

import json
from dataclasses import replace

import pytest
import torch

from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.study import Study, judged_again
from dprm.evaluate.trainings import study
from dprm.host.weights import sha256
from dprm.hosts import load, task_of, trainings_of
from dprm.hosts.dmpo.host import parts
from dprm.train import checkpoint
from dprm.train.denoiser import save_weights
from dprm.train.posttraining import ARMS, DPRM, LEARNING, START
from dprm.train.training import Training
from dprm.train.transformer import Transformer

TASK, USUAL = task_of("dmpo"), trainings_of("dmpo")
SMALL = replace(USUAL.rehearsal(), steps=9, samples=2, checked=2, width=14, widths=(14,))


def rehearse(folder, trainings=SMALL, weights=None, **how):
    how = {"limit": 4, "difficulty": "4-5", "resamples": 20, "folder": folder, **how}
    return study("dmpo", TASK, trainings, weights or {}, **how)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    card, outcomes = rehearse(folder)
    return card, outcomes, folder


def without_time(card):
    data = json.loads(card.to_json())
    for entry in data["results"]:
        assert entry.pop("seconds") >= 0
        del entry["time_ratio"]
    return data


def test_a_study_gives_weights_a_policy_and_a_card(whole):
    card, _, folder = whole
    names = (
        {f"{arm}.safetensors" for arm in (START, *ARMS)}
        | {f"{arm}.dprm" for arm in LEARNING}
        | {"setting.json", ".lock"}
    )
    assert {path.name for path in folder.iterdir() if path.is_file()} == names
    assert {arm: facts["steps"] for arm, facts in card.arms.items()} == {START: 0, **dict.fromkeys(ARMS, 9)}
    assert card.arms[DPRM]["weights"] == sha256(folder / f"{DPRM}.safetensors")[:16]
    assert "policy" in card.arms[DPRM]
    assert (card.count, card.samples, card.paired) == (4, 2, True)
    assert card.problems.keys() == card.parts.keys() == {"4", "5", "all", "hard"}
    for condition, table in card.passk.items():
        assert " by " in condition
        assert table.keys() == card.problems.keys()
        assert set(table["hard"]["first"]) == {"1", "2", "mean", "intervals"}


def test_every_arm_is_decoded_by_the_hosts_order_and_only_one_has_learned_another(whole):
    card = whole[0]
    decoded_by = {arm: {entry["order"] for entry in card.results if entry["arm"] == arm} for arm in card.arms}
    plain = {"confidence", "empty shortlist_top_m"}
    assert decoded_by[START] == decoded_by["random"] == plain
    assert decoded_by[DPRM] == plain | {"learned shortlist_top_m", "learned top_m"}


def test_all_arms_begin_with_the_same_weights_on_the_same_prompts(whole):
    card, _, folder = whole
    recipes = [json.dumps([card.arms[arm][fact] for fact in ("plan", "recipe")]) for arm in ARMS]
    assert len(set(recipes)) == 1
    assert len({card.arms[arm]["weights"] for arm in (START, *ARMS)}) == 1 + len(ARMS)
    assert checkpoint.load(folder / "random.safetensors")[1]["law"] == "random"


def test_a_card_and_its_outcomes_give_the_same_numbers_again(whole, tmp_path):
    card, outcomes, _ = whole
    card.save(tmp_path / "card.json", outcomes)
    again = judged_again(Study.load(tmp_path / "card.json"), Outcomes.load(tmp_path / "card.outcomes.npz"))
    assert json.loads(again.to_json()) == json.loads(card.to_json())


def test_a_folder_holds_one_study(whole):
    with pytest.raises(ValueError, match=r"holds another study: rate is 1e-05 there and 0\.1 here.*--work"):
        rehearse(whole[2], replace(SMALL, rate=0.1))
    with pytest.raises(ValueError, match="holds another study: seed is 0 there and 1 here"):
        rehearse(whole[2], seed=1)


def test_a_killed_study_ends_in_the_same_card(whole, tmp_path, monkeypatch):
    update, calls = Training._update, []

    def counted(self):
        calls.append(0)
        if len(calls) == 13:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Training, "_update", counted)
    with pytest.raises(KeyboardInterrupt):
        rehearse(tmp_path)
    again, _ = rehearse(tmp_path)
    assert without_time(again) == without_time(whole[0])
    # The first arm was done and is not trained again; the second starts anew, as it had no checkpoint yet.
    assert len(calls) == 13 + (len(ARMS) - 1) * 9


def test_more_samples_or_orders_train_nothing_anew(whole, monkeypatch):
    monkeypatch.setattr(Training, "_update", lambda self: pytest.fail("a training was not gone on with"))
    card, _ = rehearse(whole[2], replace(SMALL, orders=("random",), samples=3))
    assert {entry["order"] for entry in card.results} == {"random"}


def test_given_weights_are_the_start(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_weights(path, Transformer(TASK.shaped(32, 1), 3), {"host": "dmpo"})
    card, _ = rehearse(tmp_path / "work", replace(SMALL, orders=("confidence",)), {START: path})
    assert card.arms[START]["weights"] == sha256(path)[:16]
    assert not (tmp_path / "work" / "start.safetensors").exists()
    save_weights(path, Transformer(TASK.shaped(32, 1), 4), {"host": "dmpo"})
    with pytest.raises(ValueError, match="holds another study: start is"):
        rehearse(tmp_path / "work", SMALL, {START: path})
    save_weights(path, Transformer(TASK.shaped(32, 1), 4), {"host": "puma"})
    with pytest.raises(ValueError, match="has host 'puma': expected 'dmpo'"):
        rehearse(tmp_path / "other", SMALL, {START: path})
    with pytest.raises(ValueError, match="weights has 'random': expected one of start"):
        rehearse(tmp_path / "other", SMALL, {"random": path})
    with pytest.raises(ValueError, match="weights has no start: give the file of the weights to begin with"):
        rehearse(tmp_path / "other", replace(SMALL, tiny=0))
    assert not (tmp_path / "other").exists()


def test_hard_problems_are_outside_of_post_training():
    assert USUAL.difficulty == "3-4"
    assert [parts(((1,) * size, 7)) for size in (3, 4, 5, 6)] == [("3",), ("4",), ("5", "hard"), ("6", "hard")]
    assert set(load("dmpo").sizes) == {3, 4, 5, 6}
    assert USUAL.temperature == USUAL.heat == 1.0


def test_the_gate_opens_in_the_first_half_whatever_the_number_of_updates():
    host = load("dmpo")
    gates = [USUAL._learner(host, steps, DPRM).gate for steps in (800, 80, None)]
    assert [(gate.warm, gate.switch) for gate in gates] == [(10, 40), (1, 4), (40, 160)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": None}, r"minutes is 0\.0: expected"),
        ({"steps": 0}, "steps is 0"),
        ({"negative": -1.0}, "negative is -1"),
        ({"orders": ("certainty",)}, "signal is 'certainty'"),
        ({"orders": ("learned best",)}, "orders has 'learned best': expected learned with one of top_m, "),
        ({"orders": ("empty top_m",)}, "orders has 'empty top_m': expected empty with one of shortlist_top_m, "),
    ],
)
def test_what_cannot_work_is_refused_before_any_work(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        rehearse(tmp_path / "work", replace(SMALL, **changes))
    assert not (tmp_path / "work").exists()


def test_pass_at_k_is_that_of_the_successes():
    names = {"start by confidence, 2 a step": 0, "random by confidence, 2 a step": 1, "late by learned, 2 a step": 2}
    won = torch.zeros(3, 6, 2)
    won[:, :2] = 1.0  # Problems of 4 are always solved, those of 5 never,
    won[1, 4:, 1] = 1.0  # and those of 6 by the second sample of one arm.
    scores = {name: won[arm].T.unsqueeze(2).repeat(1, 1, 2) for name, arm in names.items()}
    nfe = {name: torch.full((2, 6), 7) for name in names}
    entries = [{"calls": {"denoiser": 7.0}, "seconds": 1.0, "width": 2} for _ in names]
    for entry, name in zip(entries, names, strict=True):
        entry["arm"], entry["order"] = name.split(",")[0].split(" by ")
    card = Study(
        host="dmpo",
        split="test",
        problems={},
        count=6,
        seed=0,
        resamples=20,
        samples=2,
        arms={},
        results=entries,
        differences=[],
        command="",
        notes={"usual": "confidence"},
        parts={"all": [0, 6], "4": [0, 2], "5": [2, 4], "6": [4, 6], "hard": [2, 6]},
    )
    judged = judged_again(card, Outcomes(torch.arange(6), torch.arange(6), scores, nfe))
    table = judged.passk["random by confidence"]
    assert table["4"]["first"].pop("intervals") == {"1": [1.0, 1.0], "2": [1.0, 1.0]}
    assert table["4"]["first"] == {"1": 1.0, "2": 1.0, "mean": 1.0}
    for each in (table["6"]["first"], table["6"]["unbiased"]):
        each.pop("intervals", None)
    assert table["6"]["first"] == {"1": 0.0, "2": 1.0, "mean": 0.5}
    assert table["6"]["unbiased"] == {"1": 0.5, "2": 1.0, "mean": 0.75}
    assert table["hard"]["unbiased"]["mean"] == 0.375
    assert table["all"]["unbiased"]["mean"] == pytest.approx(0.75 / 3 + 1 / 3)
    found = {
        (entry["treated"], entry["control"]): entry["unbiased"]["estimate"]
        for entry in judged.differences
        if entry["part"] == "hard"
    }
    assert found["random", "start"] == 0.375
    assert found["late by learned", "random by confidence"] == -0.375
    assert found["late by learned", "start by confidence"] == 0.0
    assert {entry["nfe"] for entry in judged.results} == {7.0}
    assert all(entry["time_ratio"] == 1.0 for entry in judged.results)
    with pytest.raises(ValueError, match="these outcomes are not those of the study of 6 problems"):
        judged_again(card, Outcomes(torch.arange(5), torch.arange(5), scores, nfe))
