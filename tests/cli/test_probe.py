"""`dprm probe` as a person meets it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from dprm.cli import app

HOST = f"{Path(__file__).parents[1] / 'evaluate' / 'test_forced.py'}:AnsweredHost"
TOY = f"{Path(__file__).parents[1] / 'toy_host.py'}:ToyHost"


def invoke(*arguments):
    return CliRunner().invoke(app, ["probe", *arguments])


def test_a_probe_shows_every_order_and_writes_a_card(tmp_path):
    out = tmp_path / "probe.json"
    shown = invoke(HOST, "--limit", "4", "--orders", "random", "--out", str(out))
    assert shown.exit_code == 0, shown.output
    assert "4 problems of select with known answers" in shown.output
    card = json.loads(out.read_text())
    assert list(card["orders"]) == ["confidence", "random"]
    assert card["kind"] == "probe"
    assert card["orders"]["random"]["early"]["delta"] is not None


def test_a_host_without_answers_is_refused():
    shown = invoke(TOY)
    assert shown.exit_code == 2
    assert "knows no answers" in shown.output
