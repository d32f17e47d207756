"""The comparison draws what the card says: every metric, every interval, also where an end of it is 0."""

import dataclasses
import re

import pytest

from dprm.evaluate.card import Estimate
from dprm.host.metrics import HELD_OUT, SET, Metric
from dprm.report.colours import LEARNED
from dprm.report.comparison import comparison, intervals


def shown(card):
    return comparison(card, dict.fromkeys(card.arms, "red"))


def row_of(section, order, table=0):
    return next(dict(zip(section.tables[table].columns, row)) for row in section.tables[table].rows if row[0] == order)


def means_drawn(*points, interval=" with its 95 % interval"):
    """The figure of means of these points: order, estimate, low and high."""
    rows = [dict(zip(("order", "estimate", "low", "high"), point)) for point in points]
    caption = f"Mean reward{interval}, 24 problems."
    return intervals(rows, {point[0]: "red" for point in points}, "mean reward", caption)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.4), (-0.4, 0.0)])
def test_an_interval_that_ends_at_0_is_drawn_to_its_end(card, low, high):
    arm = dataclasses.replace(card.arms["random"], mean=0.1, low=low, high=high, metrics={})
    figure = shown(dataclasses.replace(card, arms={"confidence": arm})).figures[0]
    assert figure == means_drawn(("confidence", 0.1, low, high))
    assert figure != means_drawn(("confidence", 0.1, 0.1, 0.1))


def test_an_order_without_an_interval_is_a_point(card):
    arm = dataclasses.replace(card.arms["random"], mean=0.1, low=None, high=None, metrics={})
    figure = shown(dataclasses.replace(card, arms={"confidence": arm})).figures[0]
    assert figure == means_drawn(("confidence", 0.1, 0.1, 0.1), interval="")


def test_what_is_solved_is_drawn_where_answers_are_solved_or_not(card):
    figures = shown(card).figures
    assert figures[0].caption == "Share solved with its 95 % interval, 24 problems."
    assert figures[1].caption.startswith("Share solved, difference to confidence")
    assert "Mean reward" in shown(dataclasses.replace(card, arms=_unsolved(card))).figures[0].caption


def _unsolved(card):
    return {name: dataclasses.replace(arm, metrics={}) for name, arm in card.arms.items()}


def test_the_learned_order_is_bold(learned_card):
    drawn = comparison(learned_card, {**dict.fromkeys(learned_card.arms, "red"), "dprm": LEARNED}).figures[0].svg
    assert drawn.count('font-weight="bold"') == 1
    assert "bold" not in shown(learned_card).figures[0].svg


def test_every_metric_is_in_the_table_with_its_role_its_interval_and_its_difference(card):
    arm = card.arms["random"]
    estimate = Estimate(0.5, 0.4, 0.6, -0.1, -0.2, 0.0)
    metrics = [Metric("reward"), Metric("solved", role=HELD_OUT), Metric("diversity", role=SET)]
    arms = {**card.arms, "random": dataclasses.replace(arm, metrics={**arm.metrics, "diversity": estimate})}
    section = shown(dataclasses.replace(card, metrics=metrics, arms=arms))
    assert row_of(section, "random")["diversity"] == "0.500"
    assert row_of(section, "confidence")["diversity"] == "–"
    found = [row for row in section.tables[1].rows if row[1] == "diversity"]
    assert found == [["random", "diversity", "set", "0.500 [0.400, 0.600]", "-0.100 [-0.200, +0.000]"]]
    solved = arm.metrics["solved"]
    assert ["random", "solved", "held out"] in [row[:3] for row in section.tables[1].rows]
    assert f"{solved.mean:.3f} [{solved.low:.3f}, {solved.high:.3f}]" in {row[3] for row in section.tables[1].rows}


def test_a_card_of_one_metric_has_one_table(card):
    assert len(shown(dataclasses.replace(card, metrics=[Metric("reward")])).tables) == 1


def test_several_decode_seeds_are_said_and_their_spread_is_shown(card, learned_card):
    section = shown(learned_card)
    assert "under 2 decode seeds" in section.lead
    assert re.fullmatch(r"\d\.\d{3}", row_of(section, "random")["between seeds"])
    assert "between seeds" not in shown(card).tables[0].columns
    assert "decode seeds" not in shown(card).lead


def test_time_is_a_ratio_to_the_reference_and_a_dash_where_nobody_measured(card):
    arms = {name: dataclasses.replace(arm, time_ratio=1.25) for name, arm in card.arms.items()}
    assert row_of(shown(dataclasses.replace(card, arms=arms)), "random")["time"] == "1.25×"
    arms = {name: dataclasses.replace(arm, time_ratio=None) for name, arm in card.arms.items()}
    assert row_of(shown(dataclasses.replace(card, arms=arms)), "random")["time"] == "–"


def test_independent_samples_are_not_called_paired(card):
    assert "differences are paired" in shown(card).lead
    assert "independent" in shown(dataclasses.replace(card, paired=False)).lead
