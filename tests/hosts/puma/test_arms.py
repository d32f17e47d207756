"""The arms of a study differ in their mask law and in nothing else."""

from dataclasses import replace

import pytest
import torch

from dprm.hosts import task_of, trainings_of
from dprm.train.recipe import Recipe
from dprm.train.train import LAWS
from tests.hosts.puma.arms import arm_files, write_arm

TASK, CPU = task_of("puma"), torch.device("cpu")
# What `write_arm` writes.
RECIPE = Recipe(rows=16, steps=5, seed=3)
LAWS_OF_FIVE_STEPS = replace(trainings_of("puma"), steps=5, rows=16, tiny=32)


def trained(weights, folder, trainings=LAWS_OF_FIVE_STEPS, seed=3):
    trainings.check("puma", TASK, weights, folder, seed)
    return trainings.trained("puma", TASK, weights, folder, seed, CPU)


def test_arms_say_how_they_were_trained(tmp_path):
    arms = trained(arm_files(tmp_path), tmp_path / "work")
    assert list(arms) == list(LAWS)
    told = arms["dprm"].facts
    assert (told["law"], told["steps"], told["canvases"], told["recipe"]["seed"]) == ("dprm", 5, 5 * 16, 3)
    assert told["weights"] != arms["random"].facts["weights"]
    assert [arm for arm, made in arms.items() if made.policy is not None] == ["dprm"]
    assert told["policy"]
    assert not (tmp_path / "work").exists()


def test_an_arm_without_what_it_learned_is_one_without_learned_orders(tmp_path):
    files = arm_files(tmp_path)
    files["dprm"].with_suffix(".dprm").unlink()
    arms = trained(files, tmp_path / "work")
    assert arms["dprm"].policy is None
    assert "policy" not in arms["dprm"].facts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 6}, "arms must agree: steps is 5 there and 6 here, with .*random.* there and .*dprm.* here"),
        ({"recipe": Recipe(rows=32, steps=5, seed=3)}, r"recipe\.rows is 16 there and 32 here"),
        ({"recipe": Recipe(rows=16, steps=5, seed=4)}, r"recipe\.seed is 3 there and 4 here"),
        ({"recipe": Recipe(rows=16, steps=5, seed=3, rate=1e-4)}, r"recipe\.rate is 0\.001 there and 0\.0001 here"),
        ({"depth": 2}, r"model\.depth is 1 there and 2 here"),
        ({"host": "dmpo"}, "has host 'dmpo': expected 'puma'"),
        ({"law": "random"}, "has law 'random': expected 'dprm'"),
    ],
)
def test_arms_that_differ_in_more_are_refused(tmp_path, changes, message):
    files = arm_files(tmp_path)
    write_arm(files["dprm"], **{"law": "dprm", **changes})
    with pytest.raises(ValueError, match=message):
        trained(files, tmp_path / "work")


def test_given_weights_must_agree_with_what_would_be_trained_beside_them(tmp_path):
    write_arm(tmp_path / "mine.safetensors", "random", steps=6)
    with pytest.raises(ValueError, match=r"steps is 6 there and 5 here, with .*mine.* there and these settings here"):
        trained({"random": tmp_path / "mine.safetensors"}, tmp_path / "work")


def test_how_often_progress_is_shown_does_not_matter(tmp_path):
    files = arm_files(tmp_path)
    write_arm(files["dprm"], "dprm", recipe=Recipe(rows=16, steps=5, seed=3, log_every=7, compiled=True))
    assert len(trained(files, tmp_path / "work")) == 3


def test_missing_arms_are_trained_once_and_given_ones_are_not(tmp_path, monkeypatch):
    laws = []

    def pretend(task, law, recipe, *, out, **rest):
        laws.append(law)
        write_arm(out, law, recipe=recipe)

    monkeypatch.setattr("dprm.train.trainings.train", pretend)
    given = {"random": tmp_path / "mine.safetensors"}
    write_arm(given["random"], "random")
    for _ in range(2):
        arms = trained(given, tmp_path / "work")
        assert laws == ["confidence", "dprm"]
    assert arms["random"].path == given["random"]
    assert len({arm.facts["weights"] for arm in arms.values()}) == 3


def test_a_training_that_was_cut_is_gone_on_with(tmp_path, monkeypatch):
    began = []
    monkeypatch.setattr(
        "dprm.train.trainings.train",
        lambda task, law, recipe, *, out, **rest: (began.append(law), write_arm(out, law, steps=2)),
    )
    for _ in range(2):
        trained({}, tmp_path)
    assert began == [*LAWS, *LAWS]


def test_a_rehearsal_is_small_and_keeps_a_folder_of_its_own(tmp_path, monkeypatch):
    asked = []

    def pretend(task, law, recipe, *, out, **rest):
        asked.append((task.data, recipe.rows, rest["width"], rest["depth"], rest["problems"]))
        write_arm(out, law, recipe=recipe, steps=10)

    monkeypatch.setattr("dprm.train.trainings.train", pretend)
    rehearsal = trainings_of("puma").rehearsal()
    trained({}, tmp_path, rehearsal, seed=0)
    assert asked == [(rehearsal.few, 16, 32, 1, 4)] * 3
    with pytest.raises(ValueError, match="holds another study: steps is 10 there and 3 here"):
        trained({}, tmp_path, replace(rehearsal, steps=3), seed=0)


def test_what_is_missing_or_unknown_is_named(tmp_path):
    usual = trainings_of("puma")
    with pytest.raises(ValueError, match="weights has no arm random: give its file, or --steps"):
        trained({}, tmp_path / "work", usual)
    with pytest.raises(ValueError, match="weights has 'easy': expected one of random, confidence, dprm"):
        trained({"easy": tmp_path}, tmp_path / "work", usual)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows=many", "set has 'rows=many': expected a whole number"),
        ("rows=1.5", "expected a whole number"),
        ("rate", r"set has 'rate': expected NAME=NUMBER with commas, of rows \(now 1024\), rate"),
        ("negative=1", "set has 'negative=1': expected NAME=NUMBER"),
    ],
)
def test_settings_in_words(text, message):
    usual = trainings_of("puma")
    assert usual.with_settings("rows=256, rate=1e-4") == replace(usual, rows=256, rate=1e-4)
    assert usual.with_settings("") == usual
    with pytest.raises(ValueError, match=message):
        usual.with_settings(text)
