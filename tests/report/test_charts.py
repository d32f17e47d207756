"""Names beside and below a plot are shown whole."""

import altair
import pytest

from dprm.report.charts import PLOT, colour, data, figure, legend_columns, text_width
from dprm.report.comparison import intervals
from tests.report.drawn import words

SHORT = ["head", "leaning", "branched"]
LONG = [f"dprm-progressive by shortlist {number}" for number in range(7)]


@pytest.mark.parametrize("names", [SHORT, LONG, [*SHORT, *LONG], ["a"], ["漢字" * 9, "kana"], ["n" * 90, "m" * 90]])
def test_a_legend_has_the_most_columns_that_its_plot_has_room_for(names):
    def width(columns):
        return sum(max(map(text_width, names[column::columns])) + 36 for column in range(columns))

    columns = legend_columns(names)
    assert 1 <= columns <= len(names)
    assert columns == 1 or width(columns) <= PLOT
    assert columns == len(names) or width(columns + 1) > PLOT


def test_a_row_holds_three_short_names_and_a_long_one_stands_alone():
    assert legend_columns(SHORT) == 3
    assert legend_columns(LONG) == 1
    assert legend_columns(["x" * 15, "y" * 15, "z" * 15]) == 2


@pytest.mark.parametrize("names", [SHORT, LONG, [*SHORT, *LONG]])
def test_no_name_of_a_legend_is_cut_and_the_figure_is_no_wider_for_it(names):
    rows = [{"order": name, "x": place} for place, name in enumerate(names)]
    key = colour("order", dict.fromkeys(names, "red"), names, legend=True)
    chart = altair.Chart(data(rows)).mark_point().encode(x="x:Q", color=key)
    made = figure(chart.properties(width=PLOT), "Points.")
    assert set(names) <= set(words(made))
    assert int(made.svg.split('width="')[1].split('"')[0]) < PLOT + 60


def test_no_name_beside_a_plot_is_cut():
    names = ["policy_gradient-12000-words-network", "head"]
    points = [{"order": name, "estimate": 0.5, "low": 0.4, "high": 0.6} for name in names]
    made = intervals(points, dict.fromkeys(names, "red"), "mean reward", "Means.")
    assert set(names) <= set(words(made))
    assert int(made.svg.split('width="')[1].split('"')[0]) < 520
