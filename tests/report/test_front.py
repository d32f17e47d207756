"""The front page: one line a host, one picture, both from the cards."""

import dataclasses
import re

import torch

import dprm
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.evaluate.study import Study
from dprm.hosts import ENTRIES, difficulty_in_words
from dprm.order.features import LEFT
from dprm.order.features import names as features
from dprm.order.head import Head
from dprm.report.across import across
from dprm.report.front import budget, lines_of, one_a_host, picture
from dprm.report.names import with_learned_names
from dprm.report.trainings import conclusion
from dprm.report.words import in_words
from tests.draws import taught


def cards(host):
    policy = taught(dprm.Order(ready=1), 1).policy(host=host.name)
    arms = arms_of(host, ("random",), {"dprm": policy}, ablate=True)
    few = compare(host, host.problems("test", 20), arms, split="test").card
    many = compare(host, host.problems("test", 40), arms, split="test", seeds=(0, 1)).card
    return {"few.json": few, "many.json": dataclasses.replace(many, variant="hard")}


def test_every_host_has_one_line_that_of_its_largest_card(host):
    lines = one_a_host(cards(host))
    assert lines["toy"].file == "many.json"
    assert all(lines[name] is None for name in ENTRIES)


def test_the_picture_has_a_point_and_an_interval_for_every_setting(host):
    made = cards(host)
    drawn = picture(made)
    assert drawn.count("<circle") == len(lines_of(made)) == 2
    arm = made["few.json"].arms["dprm"]
    assert f"{arm.delta:+.3f} [{arm.delta_low:+.3f}, {arm.delta_high:+.3f}]" in drawn
    assert picture({**made, "again.json": made["few.json"]}) == drawn


def test_difficulty_and_budget_are_said_in_words(host):
    assert difficulty_in_words("puma", "22-25") == "22-25 clues"
    assert difficulty_in_words("dmpo", "5") == "5 numbers"
    assert difficulty_in_words("dcm", "unconditional") == "unconditional"
    card = cards(host)["few.json"]
    assert budget(card) == "1 position a step"
    even = dataclasses.replace(card, decoding={"count": "Even(steps=32)"})
    assert budget(even) == "32 even steps"


def test_the_page_across_hosts_has_every_table_and_names_hosts_without_a_card(host):
    sections = across(cards(host))
    titles = [table.title for section in sections for table in section.tables]
    assert titles == [
        "Configuration",
        "Cost of a decoding",
        "Protocol",
        "Support",
        "Do changed decisions change outputs?",
        "Every metric",
        "Scalarizations",
        "Verdict",
        "Theory to evidence",
    ]
    assert "No card yet: dmpo" in sections[0].lead
    by_title = {table.title: table for section in sections for table in section.tables}
    assert all(len(row) == len(table.columns) for table in by_title.values() for row in table.rows)
    assert [row[0] for row in by_title["Cost of a decoding"].rows] == [
        "toy, 1 position a step",
        "toy, hard, 1 position a step",
    ]
    assert re.fullmatch(r"1\.00 ×", by_title["Cost of a decoding"].rows[0][1])


def test_a_learned_order_of_another_name_is_called_dprm(host):
    card = cards(host)["few.json"]
    old = dataclasses.replace(
        card,
        arms={name.replace("dprm", "toy-5"): arm for name, arm in card.arms.items()},
        partings={name.replace("dprm", "toy-5"): parting for name, parting in card.partings.items()},
        replays=None,
    )
    for arm in old.arms.values():
        arm.ablates = None if arm.ablates is None else "toy-5"
    named = with_learned_names(old)
    assert named.arms.keys() == card.arms.keys()
    assert {arm.ablates for arm in named.arms.values()} == {None, "dprm"}
    assert named.partings.keys() == card.partings.keys()
    several = {**old.arms, "peer": old.arms["toy-5"], "toy-6": old.arms["toy-5"]}
    assert {"dprm 5", "dprm 6", "peer"} <= with_learned_names(dataclasses.replace(old, arms=several)).arms.keys()


def test_policies_are_said_in_words():
    assert "Nothing" in in_words(dprm.Order().policy())
    names = features(1, 4)
    weight = torch.zeros(len(names))
    weight[names.index(LEFT)] = -1.0
    weight[[name.startswith("host's choice +") for name in names]] = -0.5
    told = in_words(dprm.Order(signal="odds", head=Head(weight, support=9), ready=1).policy())
    assert told.startswith("It reveals: not together what stands side by side (67% of all weight); from left to right")
    assert "correlation" in in_words(taught(dprm.Order(phases=2, bins=4, ready=1), 1).policy())


def test_a_study_begins_with_what_it_found():
    entry = {"treated": "dprm", "control": "random", "over": "training", "part": "all", "width": 1, "order": "entropy"}
    found = {"estimate": 0.1, "low": 0.05, "high": 0.15}
    study = Study(
        "toy", "test", {}, 40, 0, 5000, {"random": {}, "dprm": {}}, [], [{**entry, **found}], "dprm study toy"
    )
    assert "+0.100 [+0.050, +0.150], better than random" in conclusion(study)
    turned = dataclasses.replace(study, differences=[{**entry, **found, "treated": "random", "control": "dprm"}])
    assert "-0.100 [-0.150, -0.050], worse than random" in conclusion(turned)
    assert conclusion(dataclasses.replace(study, arms={"random": {}})) == ""
