"""Study cards are read back as they were written, and nothing else is read as one."""

import json

import pytest

from dprm.evaluate.study import Study

CARD = {
    "host": "puma",
    "split": "test",
    "problems": {"all": "0123"},
    "count": 2,
    "seed": 0,
    "resamples": 10,
    "arms": {"random": {"steps": 3}},
    "results": [{"arm": "random", "solved": 0.5}],
    "differences": [],
    "command": "dprm study puma",
}


def test_a_card_survives_a_file(tmp_path):
    card = Study(**CARD)
    card.save(tmp_path / "card.json")
    assert Study.load(tmp_path / "card.json") == card
    data = json.loads((tmp_path / "card.json").read_text())
    assert data["kind"] == "study"
    assert {"dprm", "torch"} <= data["versions"].keys()


def test_numbers_that_json_does_not_know_are_refused():
    with pytest.raises(ValueError, match="Out of range float values"):
        Study(**{**CARD, "results": [{"solved": float("nan")}]}).to_json()


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", '{"kind": "study", "schema": 2}', '{"kind": "study"}'])
def test_other_files_are_named(tmp_path, text):
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(ValueError, match=r"card\.json is not a study card"):
        Study.load(tmp_path / "card.json")
