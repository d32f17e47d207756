"""Problems as hard as asked for, on every host that can."""

import pytest

from dprm.host.difficulty import whole_range
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.puma.board import NINE, SIX
from dprm.hosts.puma.host import Sudoku
from dprm.hosts.puma_words.host import WordProblems
from tests.toy_host import ToyHost


@pytest.mark.parametrize(("text", "found"), [("5", (5, 5)), ("3-6", (3, 6)), (" 3 - 6 ", (3, 6))])
def test_one_number_or_a_range(text, found):
    assert whole_range(text, "things", 2, 6) == found


@pytest.mark.parametrize("text", ["", "x", "1", "7", "6-3", "3-7", "3-", "-3", "3-4-5", "3.5", "٣"])
def test_anything_else_is_named(text):
    with pytest.raises(ValueError, match=r"difficulty is .*: expected things, 2 to 6, as one number or as FIRST-LAST"):
        whole_range(text, "things", 2, 6)


def test_countdown_by_how_many_numbers_are_given():
    host = Countdown(None)
    facts = host.at("5-6").problems("test", 7).facts
    assert [len(numbers) for numbers, _ in facts] == [5, 6, 5, 6, 5, 6, 5]
    assert {len(numbers) for numbers, _ in host.at("2").problems("test", 4).facts} == {2}
    assert host.sizes == (3, 4, 5, 6)


def test_sudoku_by_how_many_clues_there_are():
    host = Sudoku(None)
    canvas = host.at("40-42").problems("select", 12).canvas
    assert set((canvas != NINE.mask_id).sum(1).tolist()) <= {40, 41, 42}
    assert host.clues == (26, 36)
    assert Sudoku(None, SIX).at("20").clues == (20, 20)


def test_word_problems_by_how_many_steps_a_solution_has():
    host = WordProblems(None)
    two, four = (host.at(steps).problems("test", 4) for steps in ("2", "4"))
    assert two.digest != four.digest
    assert host.steps == 3
    with pytest.raises(ValueError, match="difficulty is '2-4': expected one number of steps"):
        host.at("2-4")


def test_a_host_without_difficulties_says_so():
    with pytest.raises(ValueError, match="difficulty is '3': the problems of host toy have no difficulty to choose"):
        ToyHost().at("3")
