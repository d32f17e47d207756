"""Marks that want the same place stand side by side, and no further from it than they have to."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprm.report.spread import spread

PLACES = st.lists(st.floats(0, 300), min_size=1, max_size=12).map(sorted)


@given(PLACES, st.floats(0.5, 20))
def test_marks_stand_clear_of_each_other_in_their_order(wanted, apart):
    places = spread(wanted, apart)
    assert len(places) == len(wanted)
    assert all(right - left >= apart - 1e-6 for left, right in pairwise(places))
    # Nothing is gained or lost on the whole: what moves to the left lets others move to the right.
    assert sum(places) == pytest.approx(sum(wanted), abs=1e-6)


@given(PLACES)
def test_marks_that_are_clear_already_stay(wanted):
    clear = [place + 10 * index for index, place in enumerate(wanted)]
    assert spread(clear, 10) == pytest.approx(clear)


def test_a_pool_stands_around_the_place_it_wants():
    assert spread([50, 50, 50, 90], 10) == pytest.approx([40, 50, 60, 90])
    assert spread([50, 50, 55], 10) == pytest.approx([51.67 - 10, 51.67, 51.67 + 10], abs=0.01)
