"""The page of a search: its survivors by rank, and what an answer costs."""

import dataclasses

import pytest

from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.report.searching import searching
from dprm.search import ByFunction, Schedule, searched
from dprm.search.around import FRESH
from tests.report.drawn import words


@pytest.fixture(scope="module")
def search_card(host):
    verifies = ByFunction(lambda tokens, facts: (tokens == 0).float().mean(1), calls=1)
    around = searched(host, Schedule(width=6, survivors=3, first=1, interval=1, decay=1.6), verifies, temperature=1.0)
    return compare(around, around.problems("test", 12), arms_of(around, ()), split="test").card


def shown(card):
    return searching(card, dict.fromkeys(card.arms, "red"))


def test_a_card_without_a_search_has_no_such_section(card):
    assert shown(card) is None


def test_every_rank_is_drawn_and_told(search_card):
    section = shown(search_card)
    table = section.tables[0]
    row = dict(zip(table.columns, next(row for row in table.rows if row[0] == FRESH)))
    arm = search_card.arms[FRESH]
    assert row["rank 2"] == f"{arm.metrics['rank 2'].mean:.3f}"
    assert row["voted"] == f"{arm.metrics['solved'].mean:.3f}"
    assert {"voted", "rank 1", "rank 2", "rank 3", "any of 3"} <= set(words(section.figures[0]))


def test_calls_of_the_verifier_are_apart(search_card):
    table = shown(search_card).tables[0]
    row = dict(zip(table.columns, table.rows[0]))
    arm = search_card.arms[search_card.reference]
    assert float(row["verifier calls"]) == pytest.approx(arm.calls["verifier"], abs=0.06)
    assert float(row["denoiser calls"]) == pytest.approx(arm.calls["denoiser"], abs=0.06)


def test_questions_that_differ_in_calls_say_by_how_much(search_card):
    arm = search_card.arms[search_card.reference]
    spread = arm.diagnostics["calls by problem"]
    assert spread == sorted(spread)
    assert spread[0] < spread[-1], "equal answers are verified once, so questions differ"
    alone = dataclasses.replace(search_card, arms={search_card.reference: dataclasses.replace(arm, diagnostics={})})
    assert shown(alone).tables[0].rows[0][-1] == "–"
