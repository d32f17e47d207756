"""The command `dprm theory`."""

import json

import pytest
from typer.testing import CliRunner

from dprm.cli import app
from dprm.theory import statement
from dprm.theory.statement import Statement, at_most


@pytest.fixture
def invoke():
    return lambda *arguments: CliRunner().invoke(app, ["theory", *arguments])


def test_one_statement_is_explained(invoke):
    result = invoke("--only", "ordering/myopic")
    assert result.exit_code == 0
    assert "1 of 1 statements hold" in result.stdout
    assert "condition" in result.stdout


def test_table_fits_one_hundred_columns(invoke):
    result = invoke("--only", "doob")
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


def test_json_carries_claim_condition_and_numbers(invoke):
    report = json.loads(invoke("--only", "gating", "--json", "--seed", "2").stdout)
    assert report["seed"] == 2
    assert report["failed"] == []
    assert {"name", "claim", "condition", "named_in_paper", "measured", "bound", "holds"} <= set(
        report["statements"][0]
    )


def test_an_unknown_name_is_refused(invoke):
    assert invoke("--only", "nonsense").exit_code == 2


def test_a_statement_that_does_not_hold_makes_the_command_fail(invoke, monkeypatch):
    broken = Statement("doob/broken", "1 <= 0", "none", "-", True, lambda seed, quick: at_most(1.0, 0.0))
    monkeypatch.setitem(statement._ALL, broken.name, broken)
    result = invoke("--only", "broken")
    assert result.exit_code == 1
    assert "does not hold: doob/broken" in result.stdout
