"""Curves of pass@K: a colour a training, a dash an order; captions say which problems, not how many."""

from xml.etree import ElementTree

import pytest

from dprm.evaluate.study import Study
from dprm.report.charts import SOFT
from dprm.report.passing import passing
from tests.report.drawn import groups, words


def stroked(figure, colour):
    """How many paths are painted with a stroke of this colour, their own or that of a group around them."""

    def count(element, around):
        stroke = element.get("stroke", around)
        return (element.tag == "path" and stroke == colour) + sum(count(child, stroke) for child in element)

    return count(ElementTree.fromstring(figure.svg), None)


def study(*parts, labels=("start",), results=()):
    curve = {"1": 0.2, "4": 0.5, "mean": 0.35}
    passk = {label: {part: {"unbiased": curve, "first": curve} for part in parts} for label in labels}
    return Study("toy", "test", {}, 40, 0, 5000, {"start": {}}, list(results), [], "dprm study toy", passk=passk)


@pytest.mark.parametrize(
    ("part", "caption", "cell"),
    [("3", "pass@K on problems of size 3.", "size 3"), ("hard", "pass@K on hard problems.", "hard")],
)
def test_a_number_is_a_size_and_a_name_is_a_name(part, caption, cell):
    section = passing(study(part), {"start": "red"})
    assert [figure.caption for figure in section.figures] == [caption]
    assert {row[1] for row in section.tables[0].rows} == {cell}


def test_a_study_without_samples_has_no_curves():
    assert passing(study(), {}) is None


@pytest.mark.parametrize(("widths", "suffixes"), [((2,), ("",)), ((1, 2), (", 1 a step", ", 2 a step"))])
def test_conditions_of_one_training_share_its_colour_and_orders_are_told_apart_by_dashes(widths, suffixes):
    orders = ("confidence", "learned top_m")
    results = [
        {"arm": arm, "order": order, "width": width}
        for arm in ("start", "dprm")
        for order in orders
        for width in widths
    ]
    labels = [f"{arm} by {order}{suffix}" for arm in ("start", "dprm") for order in orders for suffix in suffixes]
    section = passing(study("all", labels=labels, results=results), {"start": "red", "dprm": "blue"})
    (figure,) = section.figures
    lines = [path for group in groups(figure, "mark-line") for path in group]
    assert len(lines) == len(labels)
    dashed = [f"{order}{suffix}" for order in orders for suffix in suffixes]
    assert {"start", "dprm", *dashed} <= set(words(figure))
    assert stroked(figure, SOFT) == len(dashed), "the legend shows every dash"
    assert {row[0] for row in section.tables[0].rows} == set(labels)


def test_a_condition_that_no_result_explains_is_drawn_under_its_own_name():
    (figure,) = passing(study("all", labels=("stranger",)), {}).figures
    assert "stranger" in words(figure)
