"""The width of a search falls as Prism's does."""

import pytest

from dprm.search import Schedule


def test_the_defaults_are_prisms():
    assert Schedule().prunes == [(4, 9), (8, 4)]


def test_a_search_without_prunes_has_one_width():
    assert Schedule(width=4, survivors=4).prunes == []
    assert Schedule(width=1, survivors=1).prunes == []


def test_a_schedule_that_never_reaches_the_survivors_is_refused():
    with pytest.raises(ValueError, match="ends with 9 branches"):
        _ = Schedule(last=8).prunes
    with pytest.raises(ValueError, match="width is 2"):
        Schedule(width=2, survivors=4)
    with pytest.raises(ValueError, match="decay is 1"):
        Schedule(decay=1.0)
