"""Cards and studies of the first schema are read and shown as they always were."""

import json
from dataclasses import replace

import pytest

from dprm.evaluate.card import Card
from dprm.evaluate.cards import cards_in, studies_in
from dprm.evaluate.verdict import judge
from dprm.report.page import page
from dprm.report.readme import fit_table, study_table, table
from dprm.report.runs import read_run

ARM = {"mean": 0.5, "low": 0.4, "high": 0.6, "solved": 0.375, "delta": None, "delta_low": None, "delta_high": None}
ARM |= {"nfe": 28.0, "changed": 0.0, "ready": 0.0, "gate": 0.0, "seconds": 0.02, "policy": None, "differs": None}
ARM |= {"guidance": None, "fit": {}, "ablates": None, "gap": None, "gap_low": None, "gap_high": None, "diagnostics": {}}
GAIN = {"mean": 0.6, "solved": 0.5, "delta": 0.1, "delta_low": 0.05, "delta_high": 0.15, "changed": 0.25, "ready": 1.0}
GAIN |= {"policy": "0" * 64, "differs": 0.5, "guidance": 30.0}
CARD = {
    "host": "dmpo",
    "split": "test",
    "problems": "ef1ff6384b3e56ad",
    "count": 5000,
    "budget": "2",
    "reference": "confidence",
    "seed": 4,
    "resamples": 5000,
    "arms": {
        "confidence": ARM,
        **{
            f"head-{calls}": {**ARM, **GAIN, "fit": {"estimator": "head", "branches": "12", "calls": str(calls)}}
            for calls in (9_000, 80_000)
        },
    },
    "command": "dprm compare dmpo",
    "weights": "89877cc5694bc00a",
    "device": "cuda",
    "verdict": {"verdict": "apply", "reason": "a significant gain", "arm": "head-9000", "evidence": []},
    "notes": {"difficulty": "5"},
    "replays": None,
    "partings": {},
    "versions": {"dprm": "0.1.0"},
    "schema": 1,
}
STUDY = {
    "host": "puma_words",
    "split": "test",
    "problems": {"all": "0"},
    "count": 1000,
    "seed": 0,
    "resamples": 10,
    "arms": {"random": {"law": "random"}},
    "results": [{"arm": "random", "order": "entropy", "width": 8, "solved": 0.664, "low": 0.6, "high": 0.7}],
    "differences": [],
    "command": "dprm study puma_words",
    "audit": [],
    "passk": {},
    "notes": {"difficulty": "4"},
    "versions": {},
    "kind": "study",
    "schema": 1,
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    (tmp_path / "study.json").write_text(json.dumps(STUDY))
    return tmp_path


def test_a_card_says_the_same_in_the_new_words(folder):
    card = Card.load(folder / "card.json")
    assert (card.budget, card.seeds, card.variant, card.groups, card.reference) == ("2", [4], "5", 5000, "confidence")
    arm = card.arms["head-9000"]
    assert (arm.solved, arm.calls, arm.metrics["reward"].delta_low) == (0.5, {"denoiser": 28.0}, 0.05)
    # Its seconds hold the compilation of the model too.
    assert arm.time_ratio is None
    card.save(folder / "again.json")
    assert Card.load(folder / "again.json") == card


def test_both_are_shown_on_a_page(folder):
    html = page([read_run(folder / name) for name in ("card.json", "study.json")])
    for text in (
        "5 numbers",
        "5,000 of test",
        "0.375",
        "+0.100 [+0.050, +0.150]",
        "80,000",
        "4 reasoning steps",
        "0.664",
    ):
        assert f"<bdi>{text}</bdi>" in html, text


def test_both_are_in_the_tables_of_the_readme(folder):
    cards, studies = cards_in(folder), studies_in(folder)
    assert table(cards, "results").count("\n") == 1, "a card of fits has its own table"
    shared = "| [dmpo, 5](results/card.json) | 2 | 5,000 test |"
    line = f"{shared} head | 9,000 | 30 | 50.0% | +0.100 [+0.050, +0.150] | +20.0% |"
    assert line in fit_table(cards, "results")
    assert "| [puma_words, 4](results/study.json) | 1,000 test | random | entropy | 66.4% at 8 |" in study_table(
        studies, "results"
    )


def test_what_the_first_version_did_not_measure_is_not_evidence(tmp_path):
    head = {**ARM, **GAIN, "guidance": 268.0, "fit": {"estimator": "head", "spread": "0.25"}}
    control = {**ARM, **GAIN, "ablates": "mine", "delta": -0.2, "delta_low": -0.3, "delta_high": -0.1}
    control |= {"gap": 0.3, "gap_low": 0.2, "gap_high": 0.4}
    table_ = {**head, "fit": {"estimator": "onpolicy"}}
    arms = {"confidence": ARM, "mine": head, "mine, shuffled values": control}
    seeds = [{"estimator": "head", "fits": ["mine"], "delta": 0.1, "low": 0.09, "high": 0.11}]
    old = {**CARD, "arms": arms, "notes": {"seeds": seeds}}
    (tmp_path / "head.json").write_text(json.dumps(old))
    card = Card.load(tmp_path / "head.json")
    assert list(card.arms) == ["confidence", "mine", "mine, shuffled weights"]
    assert (card.arms["mine"].ready, card.arms["mine"].guidance) == (0.0, 67.0)
    assert "seeds" not in card.notes
    judged = judge(card)
    assert (judged.verdict, judged.arm) == ("fall back", "mine")
    ready = replace(card.arms["mine"], ready=1.0)
    assert "without a control" in judge(replace(card, arms={**card.arms, "mine": ready})).reason
    # A table's readiness was measured, and its values were shuffled as they are today.
    (tmp_path / "table.json").write_text(json.dumps({**old, "arms": {**arms, "mine": table_}}))
    assert judge(Card.load(tmp_path / "table.json")).verdict == "apply"
