"""The benchmarks run, and report ratios against a peer of the same run."""

import time

import pytest

from benchmarks import selecting
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
