"""Answers of a card as people look at them."""

import dataclasses

import pytest

from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.report.examples import ORDERS, examples


@pytest.fixture
def card(host):
    return compare(host, host.problems("test", 8), arms_of(host, ("random",)), split="test", resamples=20).card


def test_a_host_that_shows_nothing_has_no_examples(card):
    assert examples(card, {}) is None


def test_what_cannot_be_drawn_is_text(card):
    shown = dataclasses.replace(card, notes={"examples": {"random": ["<b>one</b>", "two"]}})
    section = examples(shown, {})
    assert section.figures == []
    assert section.tables[0].rows == [["random", "<b>one</b>"], ["random", "two"]]


def test_molecules_are_drawn(card):
    pytest.importorskip("rdkit")
    listed = {name: ["CCO", "<script>", "c1ccccc1"] for name in card.arms}
    section = examples(dataclasses.replace(card, host="genmol", notes={"examples": listed}), {})
    assert len(section.figures) == min(ORDERS, len(card.arms))
    for figure in section.figures:
        assert figure.svg.startswith("<svg role=")
        assert "class='legend'" in figure.svg
        assert "script" not in figure.svg
