"""The command, as a person meets it."""

import json

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from tests.draws import taught

runner = CliRunner()


@pytest.mark.parametrize("command", [[], ["demo"], ["theory"], ["policy"]])
def test_help_teaches_every_command(command):
    shown = runner.invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Usage" in shown.output
    if not command:
        assert all(name in shown.output for name in ("demo", "theory", "policy"))


def test_demo_shows_that_the_order_matters_at_equal_model_calls():
    shown = runner.invoke(app, ["demo", "--json"])
    assert shown.exit_code == 0
    orders = json.loads(shown.output)["orders"]
    assert orders["confidence"]["reward"] == 0.0
    assert orders["dprm"]["reward"] == 1.0
    assert len({numbers["model_calls"] for numbers in orders.values()}) == 1
    shown = runner.invoke(app, ["demo"])
    assert "DPRM earns +1.000 over confidence" in shown.output.replace("\n", " ")


def test_demo_says_so_when_nothing_was_learned():
    orders = json.loads(runner.invoke(app, ["demo", "--rounds", "1", "--rows", "8", "--json"]).output)["orders"]
    assert orders["dprm"]["reward"] in (0.0, 1.0)


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
