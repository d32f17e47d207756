"""The front page: one line a host, one picture, both from the cards."""

import dataclasses
import re

import dprm
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.hosts import ENTRIES, difficulty_in_words
from dprm.report.across import across
from dprm.report.front import budget, lines_of, one_a_host, picture
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
