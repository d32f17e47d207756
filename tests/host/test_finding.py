"""A file that is named twice is run once: the model that it loads may be large."""

import os
import sys

import pytest

from dprm.host.finding import attribute, find

FILE = """
from pathlib import Path
import dprm
runs = Path(__file__).with_name("runs")
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
answer = 1
def reward(tokens, facts):
    return 1.0
host = dprm.make_host("twice", lambda tokens: None, 3, {"test": [[3, 1]]}, reward)
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def times(path):
    return len(path.with_name("runs").read_text())


def test_a_host_and_a_reward_of_one_file_come_from_one_run(path):
    host = find(f"{path}:host")
    assert attribute(f"{path}:reward") is host._judged.function
    assert find(f"{path}:host") is host
    assert times(path) == 1


def test_a_file_that_changed_is_run_again(path):
    assert attribute(f"{path}:answer") == 1
    path.write_text(FILE.replace("answer = 1", "answer = 2"))
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    assert attribute(f"{path}:answer") == 2
    assert times(path) == 2


def test_a_file_that_changed_within_a_second_is_run_as_it_is_now(path, monkeypatch):
    """Same size, same second: the bytecode that Python keeps of files would be taken for that of the new one."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    at = 1_700_000_000 * 10**9
    os.utime(path, ns=(at, at))
    assert attribute(f"{path}:answer") == 1
    path.write_text(FILE.replace("answer = 1", "answer = 2"))
    os.utime(path, ns=(at, at + 1))
    assert attribute(f"{path}:answer") == 2


def test_files_of_one_name_in_two_folders_are_two(path, tmp_path):
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text("answer = 5")
    assert [attribute(f"{each}:answer") for each in (path, other, path)] == [1, 5, 1]
