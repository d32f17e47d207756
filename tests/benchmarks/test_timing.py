"""The benchmarks run, and report ratios against a peer of the same run."""

import time

import pytest

from benchmarks import checkpoint, selecting
from benchmarks.timing import medians


def test_medians_tell_slow_from_fast():
    contestants = {"slow": lambda: time.sleep(0.004), "fast": lambda: None}
    seconds = medians(contestants, repeats=5, clock=time.perf_counter)
    assert seconds["slow"] > 0.004 > seconds["fast"]
    assert medians(contestants, repeats=5)["slow"] < 0.004  # To wait is no work of the thread's.


def test_selecting_reports_every_rule_relative_to_the_floor():
    rows = selecting.measure(repeats=3)
    assert all(row["ratio"] == pytest.approx(row["microseconds"] / row["floor"]) for row in rows)
    limits = [row["limit"] for row in rows if "top_m" in row["what"]]
    assert limits == [2.5, 4.0, None, None, 2.5, 4.0, None, None]
    assert [row["limit"] for row in rows if "head" in row["what"]] == [8.0, None, 8.0, None]


def test_the_cost_of_a_fit_on_a_checkpoint_is_counted_where_it_arises():
    told = checkpoint.measure(calls=300)
    assert told["operations of a call, counted by torch, to the formula"] == 1
    assert told["calls in the account of the fit"] <= told["canvases that the model saw"]
    assert told["canvases that the model saw"] < 1.2 * told["calls in the account of the fit"]
    assert 7.9e9 < checkpoint.weights(checkpoint.LARGE) < 8.1e9
