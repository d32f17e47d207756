"""The PUMA study: every arm, order and width on the same problems, and the same card after a kill."""

import json

import pytest
import torch

from dprm.evaluate import compare as comparing
from dprm.evaluate.study import Study
from dprm.hosts.puma.study import differences, study
from dprm.train.train import LAWS
from tests.hosts.puma.arms import arm_files, write_arm

# Grids with so many clues are decoded at once.
EASY = {"difficulty": "77-78", "limit": 4, "rows": 2, "resamples": 50}


def without_time(card: Study) -> dict:
    data = json.loads(card.to_json())
    for entry in data["results"]:
        assert entry.pop("seconds") >= 0
    return data


def test_a_card_holds_every_condition_its_differences_and_its_audit(tmp_path):
    card = study("puma", arm_files(tmp_path), folder=tmp_path / "work", command="me", **EASY)
    assert (card.host, card.split, card.count, card.command) == ("puma", "test", 4, "me")
    conditions = {(entry["arm"], entry["order"], entry["width"]) for entry in card.results}
    orders = ("random", "confidence", "entropy")
    assert conditions == {(law, order, width) for law in LAWS for order in orders for width in (1, 2, 3)}
    assert sum(entry["over"] == "order" for entry in card.differences) == 27
    assert sum(entry["over"] == "training" for entry in card.differences) == 27
    assert len(card.audit) == 27
    calls = {(entry["width"], entry["nfe"]) for entry in card.results}
    assert len(calls) == 3, "conditions of one width make the same number of model calls"
    assert all("first_number" not in entry for entry in card.audit)
    assert len({arm["weights"] for arm in card.arms.values()}) == 3
    card.save(tmp_path / "card.json")
    assert Study.load(tmp_path / "card.json") == card


def test_the_random_order_of_all_arms_is_the_same(tmp_path):
    card = study("puma", arm_files(tmp_path), folder=tmp_path / "work", orders=("random",), widths=(1,), **EASY)
    for statistic in ("adjacency", "span", "backfill"):
        assert len({entry[statistic]["mean"] for entry in card.audit}) == 1


def test_a_killed_study_ends_in_the_same_card(tmp_path, monkeypatch):
    files = arm_files(tmp_path)
    whole = study("puma", files, folder=tmp_path / "whole", **EASY)
    decode, calls = comparing.batches, []

    def counted(*arguments, **options):
        for batch in decode(*arguments, **options):
            calls.append(0)
            if len(calls) == 20:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(comparing, "batches", counted)
    with pytest.raises(KeyboardInterrupt):
        study("puma", files, folder=tmp_path / "cut", **EASY)
    again = study("puma", files, folder=tmp_path / "cut", **EASY)
    # 27 conditions of 2 batches; the one that was cut is decoded again, 19 are kept.
    assert len(calls) == 20 + 54 - 19
    assert without_time(again) == without_time(whole)


def test_only_weights_that_changed_are_decoded_anew(tmp_path, monkeypatch):
    files = arm_files(tmp_path)
    how = {"folder": tmp_path / "work", "orders": ("confidence",), "widths": (1,), **EASY}
    study("puma", files, **how)
    decode, decoded = comparing.batches, []

    def noted(host, problems, *arguments, **options):
        decoded.append((host.weights_digest, len(problems)))
        yield from decode(host, problems, *arguments, **options)

    monkeypatch.setattr(comparing, "batches", noted)
    write_arm(files["random"], "random", seed=9)
    card = study("puma", files, **how)
    assert [(digest, count) for digest, count in decoded if count] == [(card.arms["random"]["weights"], 4)]


def test_word_problems_are_audited_for_when_numbers_come(tmp_path):
    card = study("puma_words", arm_files(tmp_path, "puma_words"), folder=tmp_path, limit=2, widths=(3,), resamples=10)
    assert len(card.results) == 9
    assert any("first_number" in entry for entry in card.audit)


def test_differences_are_treated_minus_control():
    solved = {
        ("random", "confidence", 1): torch.tensor([0.0, 0.0, 0.0, 1.0]),
        ("random", "entropy", 1): torch.tensor([0.0, 0.0, 1.0, 1.0]),
        ("dprm", "confidence", 1): torch.tensor([1.0, 1.0, 1.0, 1.0]),
        ("dprm", "entropy", 1): torch.tensor([1.0, 0.0, 1.0, 1.0]),
    }
    found = {
        (entry["over"], entry["treated"], entry["control"], entry.get("arm", entry.get("order"))): entry["estimate"]
        for entry in differences(solved, 100, 0)
    }
    assert found == {
        ("order", "entropy", "confidence", "random"): 0.25,
        ("order", "entropy", "confidence", "dprm"): -0.25,
        ("training", "dprm", "random", "confidence"): 0.75,
        ("training", "dprm", "random", "entropy"): 0.25,
    }


def test_a_host_without_such_a_study_is_named(tmp_path):
    with pytest.raises(ValueError, match="host is 'dmpo': expected one of puma, puma_words"):
        study("dmpo", {}, folder=tmp_path)
