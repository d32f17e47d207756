"""Every statement holds, for more than one seed, and the list of statements is well formed."""

from pathlib import Path

import pytest

from dprm.theory import doob, statements
from dprm.theory.statement import TOPICS, at_least, at_most, statement


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("one", statements(), ids=lambda s: s.name)
def test_statement_holds(one, seed):
    outcome = one.run(seed, True)
    assert outcome.holds, f"{outcome.measured} {outcome.relation} {outcome.bound} ({outcome.note})"


@pytest.mark.parametrize("one", statements("tracking/bucket"), ids=lambda s: s.name)
def test_same_seed_gives_the_same_numbers(one):
    assert one.run(3, True) == one.run(3, True)


def test_every_topic_has_statements_and_every_line_fits_the_table():
    listed = statements()
    assert {s.name.split("/")[0] for s in listed} == set(TOPICS)
    assert len({s.name for s in listed}) == len(listed)
    for one in listed:
        assert len(one.name) <= 27
        assert len(one.needs) <= 37
        assert one.claim
        assert one.condition
        if one.claim.startswith("counter-example"):
            assert one.needs.startswith("shows:")


def test_the_page_on_theory_lists_every_statement():
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
    assert [s.name for s in statements() if f"`{s.name}`" not in page] == []


def test_an_outcome_is_its_comparison():
    assert at_most(1.0, 2.0).holds
    assert not at_most(3.0, 2.0).holds
    assert at_least(3.0, 2.0).holds
    assert not at_least(1.0, 2.0).holds
    assert not at_most(1.0, 2.0, side_condition=False).holds
    assert not at_most(float("nan"), 2.0).holds


def test_two_statements_cannot_share_a_name():
    statements()
    with pytest.raises(ValueError, match="doob/terminal"):
        statement(claim="", condition="")(doob.terminal)
