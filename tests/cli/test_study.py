"""`dprm study`, as a person meets it."""

import json

import pytest
from typer.testing import CliRunner

from dprm.cli import app
from dprm.hosts import task_of
from dprm.hosts.puma.host import Sudoku
from dprm.train.denoiser import Denoiser
from dprm.train.transformer import Transformer
from tests.hosts.puma.arms import arm_files, write_arm

runner = CliRunner()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def puma(folder, *options):
    given = [f"--weights={law}={path}" for law, path in arm_files(folder).items()]
    return runner.invoke(app, ["study", "puma", *given, "--difficulty", "77-78", "--limit", "4", *options])


def test_three_weights_give_a_table_and_a_card(here):
    few = ("--widths", "2", "--orders", "confidence,learned top_m")
    shown = puma(here, *few)
    assert shown.exit_code == 0, shown.output
    assert "puma (77-78): 4 problems of select, seed 0" in shown.output
    assert "order audit" in shown.stdout
    assert "Trained and decoded: dprm by learned top_m against confidence by confidence, 2 a step" in " ".join(
        shown.stdout.split()
    )
    card = json.loads((here / "runs/study-puma.json").read_text())
    assert (card["kind"], card["variant"]) == ("study", "77-78")
    (told,) = card["notes"]["headline"]
    assert told["categories"]["26 clues and more"]["problems"] == 4
    assert told["same_checkpoint"][0]["order"] == "learned top_m"
    assert (here / "runs/study-puma.outcomes.npz").is_file()
    again = puma(here, *few, "--seeds", "2", "--json", "--out", "other.json")
    printed = json.loads(again.stdout)
    assert printed == json.loads((here / "other.json").read_text())
    assert printed["seeds"] == [0, 1]
    conditions = {(entry["arm"], entry["order"], entry["width"]) for entry in printed["results"]}
    assert conditions == {(law, "confidence", 2) for law in ("random", "confidence", "dprm")} | {
        ("dprm", "learned top_m", 2)
    }


def test_a_rehearsal_of_post_training(here):
    how = ["study", "dmpo", "--tiny", "--steps", "3", "--difficulty", "5", "--widths", "14", "--set", "width=14"]
    shown = runner.invoke(app, [*how, "--samples", "2", "--orders", "confidence"])
    assert shown.exit_code == 0, shown.output
    assert "mean pass@K, unbiased" in shown.stdout
    card = json.loads((here / "runs/study-dmpo-tiny.json").read_text())
    assert card["passk"]["random by confidence"].keys() == {"5", "all", "hard"}
    assert json.loads((here / "runs/study-dmpo-tiny/setting.json").read_text())["width"] == 14


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (["gpt"], "'gpt': expected one of dmpo, prism, puma"),
        (["puma"], "weights has no arm random: give its file, or --steps"),
        (["puma", "--weights", "random"], "weights is 'random': expected NAME=FILE"),
        (["puma", "--weights", "easy=w"], "weights has 'easy': expected one of random, confidence, dprm"),
        (["dmpo", "--weights", "random=w"], "weights has 'random': expected one of start"),
        (["dmpo", "--tiny", "--widths", "1,0"], "widths is '1,0': expected positive numbers with commas"),
        (["dmpo", "--tiny", "--difficulty", "9"], "difficulty is '9': expected how many numbers are given, 2 to 6"),
        (["dmpo", "--tiny", "--set", "minutes=soon"], "set has 'minutes=soon': expected a number"),
        (["dmpo", "--tiny", "--set", "every=3"], "set has 'every=3': expected NAME=NUMBER"),
        (["dmpo", "--tiny", "--orders", "learned best"], "orders has 'learned best': expected learned with one of"),
        (["dmpo", "--tiny", "--orders", "certainty"], "signal is 'certainty'"),
        (["dmpo", "--tiny", "--split", "exam"], "split is 'exam'"),
    ],
)
def test_bad_requests_end_with_exit_code_2_and_write_no_card(here, how, message):
    (here / "card.json").write_text("mine")
    shown = runner.invoke(app, ["study", *how, "--out", "card.json"])
    assert shown.exit_code == 2, shown.output
    assert message in " ".join(shown.output.split())
    assert (here / "card.json").read_text() == "mine"


def test_arms_at_unequal_steps_are_refused(here):
    files = arm_files(here)
    write_arm(files["dprm"], "dprm", steps=6)
    given = [f"--weights={law}={path}" for law, path in files.items()]
    shown = runner.invoke(app, ["study", "puma", *given])
    assert shown.exit_code == 2
    assert "steps is 5 there and 6 here" in shown.output


def test_compare_takes_a_difficulty(here, monkeypatch):
    host = Sudoku(Denoiser(Transformer(task_of("puma").shaped(32, 1))))
    monkeypatch.setattr("dprm.hosts.load", lambda *given, **settings: host)
    how = ["compare", "puma", "--orders", "confidence", "--limit", "3", "--out", "card.json", "--difficulty"]
    shown = runner.invoke(app, [*how, "75"])
    assert shown.exit_code == 0, shown.output
    card = json.loads((here / "card.json").read_text())
    assert card["arms"]["confidence"]["nfe"] == 81 - 75
    assert card["variant"] == "75"
    shown = runner.invoke(app, [*how, "easy"])
    assert shown.exit_code == 2
    assert "difficulty is 'easy': expected how many clues a puzzle has" in shown.output


def test_help_names_both_kinds_of_study():
    shown = runner.invoke(app, ["study", "--help"])
    assert shown.exit_code == 0
    assert all(word in shown.output for word in ("puma_words", "dmpo", "--weights", "--difficulty", "--tiny"))
    assert "study" in runner.invoke(app, ["--help"]).output
