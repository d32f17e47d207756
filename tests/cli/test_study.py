"""`dprm study`, as a person meets it."""

import json

import pytest
from typer.testing import CliRunner

from dprm.cli import app
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
    shown = puma(here)
    assert shown.exit_code == 0, shown.output
    assert "puma: 4 problems of test, seed 0" in shown.output
    assert "order audit" in shown.stdout
    card = json.loads((here / "runs/study-puma.json").read_text())
    assert card["kind"] == "study"
    assert card["notes"]["difficulty"] == "77-78"
    again = puma(here, "--widths", "2", "--orders", "confidence,entropy", "--json", "--out", "other.json")
    printed = json.loads(again.stdout)
    assert printed == json.loads((here / "other.json").read_text())
    assert {(entry["order"], entry["width"]) for entry in printed["results"]} == {("confidence", 2), ("entropy", 2)}


def test_a_rehearsal_of_post_training(here):
    how = ["study", "dmpo", "--tiny", "--steps", "3", "--difficulty", "5", "--widths", "14"]
    shown = runner.invoke(app, how)
    assert shown.exit_code == 0, shown.output
    assert "mean pass@K, unbiased" in shown.stdout
    card = json.loads((here / "runs/study-dmpo.json").read_text())
    assert card["passk"]["random"].keys() == {"5", "all", "hard"}
    assert card["notes"]["setting"]["width"] == 14


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (["gpt"], "host is 'gpt': expected one of puma, puma_words, dmpo"),
        (["puma"], "weights has no arm random"),
        (["puma", "--weights", "random"], "weights is 'random': expected NAME=FILE"),
        (["puma", "--weights", "easy=w"], "weights has an arm 'easy'"),
        (["dmpo", "--weights", "random=w"], "weights has 'random': expected start=FILE"),
        (["dmpo", "--tiny", "--widths", "1,2"], "widths is '1,2': expected one positive number"),
        (["dmpo", "--tiny", "--difficulty", "9"], "difficulty is '9': expected how many numbers are given, 2 to 6"),
        (["dmpo", "--steps", "1", "--minutes", "1"], "expected exactly one of them"),
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
    assert "steps is 5 in" in shown.output


def test_compare_takes_a_difficulty(here, monkeypatch):
    from dprm.hosts.puma.host import Sudoku
    from dprm.train.denoiser import Denoiser
    from dprm.train.task import task_of
    from dprm.train.transformer import Transformer

    host = Sudoku(Denoiser(Transformer(task_of("puma").shaped(32, 1))))
    monkeypatch.setattr("dprm.hosts.load", lambda name, device="cpu", compiled=False: host)
    how = ["compare", "puma", "--orders", "confidence", "--limit", "3", "--out", "card.json", "--difficulty"]
    shown = runner.invoke(app, [*how, "75"])
    assert shown.exit_code == 0, shown.output
    card = json.loads((here / "card.json").read_text())
    assert card["arms"]["confidence"]["nfe"] == 81 - 75
    assert card["notes"]["difficulty"] == "75"
    shown = runner.invoke(app, [*how, "easy"])
    assert shown.exit_code == 2
    assert "difficulty is 'easy': expected how many clues a puzzle has" in shown.output


def test_help_names_both_kinds_of_study():
    shown = runner.invoke(app, ["study", "--help"])
    assert shown.exit_code == 0
    assert all(word in shown.output for word in ("puma_words", "dmpo", "--weights", "--difficulty", "--tiny"))
    assert "study" in runner.invoke(app, ["--help"]).output
