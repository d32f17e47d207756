"""The command, as a person meets it."""

import json

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from tests.draws import taught
from tests.toy_host import ToyHost

runner = CliRunner()


@pytest.mark.parametrize("command", [[], ["demo"], ["theory"], ["policy"], ["hosts"], ["train"], ["fit"], ["compare"]])
def test_help_teaches_every_command(command):
    shown = runner.invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Usage" in shown.output
    if not command:
        assert all(name in shown.output for name in ("demo", "hosts", "fit", "compare", "policy", "theory"))


def test_demo_shows_that_the_order_matters_at_equal_model_calls():
    shown = runner.invoke(app, ["demo", "--json"])
    assert shown.exit_code == 0
    orders = json.loads(shown.output)["orders"]
    assert orders["confidence"]["reward"] == 0.0
    assert orders["dprm"]["reward"] == 1.0
    assert len({numbers["model_calls"] for numbers in orders.values()}) == 1
    shown = runner.invoke(app, ["demo", "--problems", "0"])
    assert "DPRM earns +1.000 over confidence" in shown.output.replace("\n", " ")


def test_demo_says_so_when_nothing_was_learned():
    orders = json.loads(runner.invoke(app, ["demo", "--rounds", "1", "--rows", "8", "--json"]).output)["orders"]
    assert orders["dprm"]["reward"] in (0.0, 1.0)


@pytest.mark.slow
def test_demo_decodes_and_replays_the_trained_host():
    shown = runner.invoke(app, ["demo", "--problems", "2"])
    assert shown.exit_code == 0, shown.output
    assert "puma_words: 2 problems of test, budget 8" in shown.output
    said = shown.output.replace("\n", " ")
    assert "the order alone moves the share of solved" in said
    assert "2 problems are few" in said


def test_policy_shows_setting_values_and_digest(tmp_path):
    stored = taught(dprm.Order(phases=2, bins=3), 1).policy(host="[bold]not markup[/]")
    stored.save(tmp_path / "p")
    shown = runner.invoke(app, ["policy", str(tmp_path / "p")])
    assert shown.exit_code == 0
    assert "6 of 6 cells have evidence" in shown.output
    assert "[bold]not markup[/]" in shown.output
    header = json.loads(runner.invoke(app, ["policy", str(tmp_path / "p"), "--json"]).output)
    assert header["digest"] == stored.digest


def test_an_unreadable_policy_is_refused_with_exit_code_2(tmp_path):
    (tmp_path / "p").write_bytes(b"nonsense")
    for path in (tmp_path / "p", tmp_path / "missing"):
        shown = runner.invoke(app, ["policy", str(path)])
        assert shown.exit_code == 2
        assert "dprm policy:" in shown.output


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("dprm.hosts.load", lambda name, device="cpu", compiled=False: ToyHost())


def test_fit_and_compare_work_together(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted = runner.invoke(app, ["fit", "toy", "--paths", "600", "--select", "40"])
    assert fitted.exit_code == 0, fitted.output
    how = [
        "compare",
        "toy",
        "--limit",
        "20",
        "--policy",
        "runs/toy.dprm",
        "--out",
        "card.json",
        "--orders",
        "confidence,random",
    ]
    compared = runner.invoke(app, how)
    assert compared.exit_code == 0, compared.output
    arms = json.loads((tmp_path / "card.json").read_text())["arms"]
    assert arms["dprm"]["mean"] == 1.0
    assert arms["confidence"]["mean"] == 0.0
    assert "paired, to confidence" in compared.output
    assert json.loads(runner.invoke(app, [*how, "--json"]).stdout)["arms"].keys() == arms.keys()


def test_own_problems_are_compared_and_lines_that_do_not_fit_are_named(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("ok\nbad line\nok\n")
    shown = runner.invoke(app, ["compare", "toy", "--problems", "mine.txt", "--orders", "confidence"])
    assert shown.exit_code == 0
    assert "left out: mine.txt, bad line" in shown.output
    assert "2 problems of mine.txt" in shown.output


def test_bad_requests_end_with_exit_code_2_and_change_nothing(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taught(dprm.Order(), 1).policy(host="other").save(tmp_path / "other.dprm")
    (tmp_path / "card.json").write_text("mine")
    for how, message in [
        (["--policy", "other.dprm"], "was fitted for host other, not toy"),
        (["--orders", "certainty"], "signal is 'certainty'"),
        (["--problems", "missing.txt"], "missing.txt"),
        (["--policy", "missing.dprm"], "missing.dprm"),
    ]:
        shown = runner.invoke(app, ["compare", "toy", "--out", "card.json", *how])
        assert shown.exit_code == 2, shown.output
        assert message in shown.output
    assert (tmp_path / "card.json").read_text() == "mine"


def test_hosts_lists_what_is_there():
    listed = json.loads(runner.invoke(app, ["hosts", "--json"]).output)
    assert {entry["name"] for entry in listed} >= {"dmpo", "puma"}
    assert "Countdown" in runner.invoke(app, ["hosts"]).output


def test_train_writes_weights_and_enters_them_where_weights_live(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path / "weights"))
    trained = []

    def pretend(host, law, recipe, *, out, **rest):
        trained.append((host, law, recipe.steps))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(b"weights")
        return {"solved": 0.5}

    monkeypatch.setattr("dprm.train.train.train", pretend)
    shown = runner.invoke(app, ["train", "puma", "--law", "dprm", "--steps", "5", "--out", "weights/puma.safetensors"])
    assert shown.exit_code == 0, shown.output
    assert trained == [("puma", "dprm", 5)]
    listed = json.loads((tmp_path / "weights" / "manifest.json").read_text())
    assert listed["puma.safetensors"]["metrics"] == {"solved": 0.5}
    assert json.loads(runner.invoke(app, ["train", "puma", "--json"]).stdout)["solved"] == 0.5
    shown = runner.invoke(app, ["train", "puma", "--steps", "5", "--minutes", "1"])
    assert shown.exit_code == 2
    assert "expected exactly one of them" in shown.output
