"""Survivors vote with e^score; only the better ones do."""

from math import exp, log

from dprm.search.vote import voted


def test_two_that_agree_beat_a_better_one_that_is_alone():
    assert exp(0.9) < exp(0.5) + exp(0.4)
    assert voted(["7", "8", "8"], [0.9, 0.5, 0.4], 1.0) == 1


def test_who_is_not_among_the_share_has_no_vote():
    assert voted(["7", "8", "8", "8"], [0.9, 0.5, 0.4, 0.3], 0.6) == 0
    assert voted(["7"], [0.1], 0.1) == 0


def test_a_tie_goes_to_the_better_first_voter():
    assert voted(["8", "7"], [0.5, 0.5], 1.0) == 0
    score = log(exp(0.9) - exp(0.2))
    assert voted(["7", "8", "8"], [0.9, score, 0.2], 1.0) == 0
