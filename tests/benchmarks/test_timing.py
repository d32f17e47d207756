"""The benchmarks run, and report ratios against a peer of the same run."""

import time

from benchmarks import selecting
from benchmarks.timing import medians


def test_medians_tell_slow_from_fast():
    seconds = medians({"slow": lambda: time.sleep(0.004), "fast": lambda: None}, repeats=5)
    assert seconds["slow"] > 0.004 > seconds["fast"]


def test_selecting_reports_every_rule_relative_to_the_floor():
    rows = selecting.measure(repeats=3)
    assert all(row["ratio"] == row["microseconds"] / row["floor"] for row in rows)
    limits = [row["limit"] for row in rows if "top_m" in row["what"]]
    assert limits == [2.5, 4.0, None, None, 2.5, 4.0, None, None]
