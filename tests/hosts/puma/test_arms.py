"""The arms of a study differ in their mask law and in nothing else."""

import pytest

from dprm.hosts.puma.arms import train_missing, trained_arms
from dprm.train.recipe import Recipe
from dprm.train.train import LAWS
from tests.hosts.puma.arms import arm_files, write_arm

RECIPE = Recipe(rows=16, steps=5, seed=3)


def test_arms_say_how_they_were_trained(tmp_path):
    arms = trained_arms("puma", arm_files(tmp_path))
    assert list(arms) == list(LAWS)
    told = arms["dprm"].account()
    assert told["law"] == "dprm"
    assert told["canvases"] == 5 * 16
    assert told["recipe"]["seed"] == 3
    assert told["weights"] != arms["random"].account()["weights"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 6}, "steps is 5 in .* and 6 in"),
        ({"recipe": Recipe(rows=32, steps=5, seed=3)}, "rows is 16 in .* and 32 in"),
        ({"recipe": Recipe(rows=16, steps=5, seed=4)}, "seed is 3 in .* and 4 in"),
        ({"recipe": Recipe(rows=16, steps=5, seed=3, rate=1e-4)}, r"rate is 0\.001 in .* and 0\.0001 in"),
        ({"depth": 2}, "model is"),
        ({"host": "dmpo"}, "has host 'dmpo': expected 'puma'"),
        ({"law": "random"}, "has law 'random': expected 'dprm'"),
    ],
)
def test_arms_that_differ_in_more_are_refused(tmp_path, changes, message):
    files = arm_files(tmp_path)
    write_arm(files["dprm"], **{"law": "dprm", **changes})
    with pytest.raises(ValueError, match=message):
        trained_arms("puma", files)


def test_how_often_progress_is_shown_does_not_matter(tmp_path):
    files = arm_files(tmp_path)
    write_arm(files["dprm"], "dprm", recipe=Recipe(rows=16, steps=5, seed=3, log_every=7, compiled=True))
    assert len(trained_arms("puma", files)) == 3


def test_missing_arms_are_trained_once_and_given_ones_are_not(tmp_path, monkeypatch):
    trained = []

    def pretend(host, law, recipe, *, out, **rest):
        trained.append(law)
        write_arm(out, law, recipe=recipe)

    monkeypatch.setattr("dprm.hosts.puma.arms.train", pretend)
    given = {"random": tmp_path / "mine.safetensors"}
    write_arm(given["random"], "random")
    for _ in range(2):
        files = train_missing("puma", given, RECIPE, tmp_path / "work")
        assert trained == ["confidence", "dprm"]
    assert files["random"] == given["random"]
    assert len(trained_arms("puma", files)) == 3


def test_a_training_that_was_cut_is_gone_on_with(tmp_path, monkeypatch):
    began = []
    monkeypatch.setattr(
        "dprm.hosts.puma.arms.train",
        lambda host, law, recipe, *, out, **rest: (began.append(law), write_arm(out, law, steps=2)),
    )
    for _ in range(2):
        train_missing("puma", {}, RECIPE, tmp_path)
    assert began == [*LAWS, *LAWS]


def test_what_is_missing_or_unknown_is_named(tmp_path):
    with pytest.raises(ValueError, match="weights has no arm random: give its file, or a number of steps"):
        train_missing("puma", {}, None, tmp_path)
    with pytest.raises(ValueError, match="weights has an arm 'easy': expected one of random, confidence, dprm"):
        train_missing("puma", {"easy": tmp_path}, RECIPE, tmp_path)
