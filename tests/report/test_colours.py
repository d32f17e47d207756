"""An order is known by its colour: in a run no two are alike, and from run to run one stays the same."""

import dataclasses

import pytest

from dprm.evaluate.study import Study
from dprm.report.colours import COUNT, LEARNED, order_colours
from dprm.report.runs import Run

NEUTRAL = "var(--order-0)"


@pytest.fixture
def colours(card):
    """The colours of comparisons, each with a reference and a text whose every letter is an order."""

    def of(*comparisons):
        runs = []
        for reference, orders in comparisons:
            arms = dict.fromkeys([reference, *orders], card.arms["random"])
            runs.append(Run("run", dataclasses.replace(card, reference=reference, arms=arms)))
        return order_colours(runs)

    return of


def test_no_colour_comes_twice_in_a_run_that_can_do_without(colours):
    # After the first run all colours have been used once: counting on would give v and w those of a and b.
    for found in colours(("z", "abcdefghi"), ("z", "vabw"), ("z", "ighfvwe"), ("z", "jklmnopqr")):
        assert len(set(found.values())) == len(found)


def test_a_run_of_many_orders_uses_every_colour_before_it_repeats_one(colours):
    (found,) = colours(("z", "abcdefghijkl"))
    shades = list(found.values())
    assert set(shades) == {f"var(--order-{index})" for index in range(COUNT)}
    assert max(map(shades.count, shades)) == 2
    assert shades.count(NEUTRAL) == 1


def test_an_order_keeps_its_colour_from_run_to_run(colours):
    first, second, third = colours(("z", "abcd"), ("z", "dxa"), ("z", "yxcb"))
    for name in "abcdx":
        assert len({found[name] for found in (first, second, third) if name in found}) == 1


def test_a_newcomer_takes_no_colour_from_an_order_that_it_meets_anywhere(colours):
    large, *others = colours(("z", "abcdefghi"), ("z", "ja"), ("z", "jb"))
    assert [found[name] for found, name in zip(others, "ab")] == [large["a"], large["b"]]
    assert others[0]["j"] == others[1]["j"]


def test_where_two_orders_cannot_both_keep_theirs_only_one_changes(colours):
    large, small, again = colours(("z", "abcdefghij"), ("z", "aj"), ("z", "jc"))
    assert large["j"] == large["a"]
    assert small["a"] == large["a"]
    assert small["j"] != small["a"]
    assert again["j"] == large["j"]


def test_every_reference_is_neutral_and_nothing_else_in_its_run(colours):
    first, second = colours(("y", "xz"), ("z", "xy"))
    assert first["y"] == second["z"] == NEUTRAL
    assert NEUTRAL not in (first["x"], first["z"], second["x"], second["y"])
    assert first["x"] == second["x"]


def test_the_reference_of_a_comparison_is_neutral_in_a_study_as_well(card):
    results = [{"arm": arm, "order": order} for arm in ("random", "dprm") for order in ("confidence", "entropy")]
    study = Study("toy", "test", {}, 40, 0, 5000, {"random": {}, "dprm": {}}, results, [], "dprm study toy")
    compared, studied = order_colours([Run("card", card), Run("study", study)])
    assert studied.keys() == {"random", "dprm", "confidence", "entropy"}
    assert studied["confidence"] == compared["confidence"] == NEUTRAL
    assert studied["random"] == compared["random"]
    assert len(set(studied.values())) == 4


def test_the_learned_order_has_one_colour_on_every_page(card, learned_card):
    other = dataclasses.replace(learned_card, arms={**learned_card.arms, "another": card.arms["random"]})
    for run in (learned_card, other):
        found = order_colours([Run("run", run), Run("card", card)])[0]
        assert found["dprm"] == LEARNED
        assert list(found.values()).count(LEARNED) == 1
