"""The committed card of `dprm theory --json` is what the command finds."""

import json
from pathlib import Path

import pytest

from dprm.theory import statements

CARD = json.loads((Path(__file__).parents[2] / "results" / "theory.json").read_text())


def test_the_card_lists_every_statement_and_all_hold():
    assert [row["name"] for row in CARD["statements"]] == [one.name for one in statements()]
    assert CARD["failed"] == []


@pytest.mark.parametrize("row", CARD["statements"], ids=lambda row: row["name"])
def test_the_card_holds_what_is_measured(row):
    (one,) = [one for one in statements() if one.name == row["name"]]
    assert (row["claim"], row["condition"], row["named_in_paper"]) == (one.claim, one.condition, one.named)
    outcome = one.run(CARD["seed"], CARD["mode"] == "quick")
    # Errors of rounding differ between machines; everything else is decided by the seed.
    assert outcome.measured == pytest.approx(float(row["measured"]), rel=0.02, abs=1e-9)
    assert outcome.holds == row["holds"]
