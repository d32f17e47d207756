"""Rewards that are ready to name."""

import time

import pytest

from dprm.contrib.hf.isolation import run_isolated
from dprm.contrib.hf.rewards import REWARDS, exact, last_number, number, passes_tests, resolve_reward

ADD = {"tests": ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]}


@pytest.mark.parametrize(
    ("text", "answer", "reward"),
    [("Paris", "paris", 1), (" the  cat\n", "the cat", 1), ("London", "Paris", 0), ("b", ["a", "B"], 1), ("7", 7, 1)],
)
def test_exact_match_leaves_out_spaces_and_case(text, answer, reward):
    assert exact(text, {"answer": answer}) == reward


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2 + 3 = 5", "5"),
        ("so 1,234.50 dollars", "1234.50"),
        (r"\boxed{7} is 3 more than 4", "7"),
        ("#### 12\nor 13", "12"),
        ("-3", "-3"),
        ("no number", None),
        ("1/2", "1/2"),
    ],
)
def test_the_last_number_is_found_as_gsm8k_and_math_write_it(text, wanted):
    assert last_number(text) == wanted


@pytest.mark.parametrize(
    ("text", "reward"), [("it is 0.5", 1), ("1/2", 1), ("2/4.", 1), ("50%", 1), ("0.6", 0), ("", 0)]
)
def test_numbers_are_compared_by_what_they_are(text, reward):
    pytest.importorskip("math_verify", reason="math-verify is not installed")
    assert number(text, {"answer": "one half, #### 1/2"}) == reward


def test_a_function_is_tried_in_a_process_of_its_own():
    assert passes_tests("def add(a, b):\n    return a + b", ADD) == 1
    assert passes_tests("Here it is:\n```python\ndef add(a, b):\n    return a + b\n```\nDone.", ADD) == 1
    assert passes_tests("    return a + b", {**ADD, "before": "def add(a, b):\n"}) == 1
    assert passes_tests("def add(a, b):\n    return a - b", ADD) == 0
    assert passes_tests("def add(a, b:", ADD) == 0
    assert passes_tests("", ADD) == 0


@pytest.mark.parametrize("code", ["import sys; sys.exit(0)", "import os; os._exit(0)", "raise SystemExit"])
def test_who_leaves_before_the_tests_has_passed_none(code):
    assert passes_tests(code, ADD) == 0


def test_time_is_limited():
    began = time.monotonic()
    assert run_isolated("while True: pass", seconds=0.5).said == "ran longer than 0.5 s"
    assert not run_isolated("import time; time.sleep(60)", seconds=0.5).passed
    assert time.monotonic() - began < 20


def test_memory_and_files_are_limited():
    assert "MemoryError" in run_isolated("x = bytearray(2 ** 31)", megabytes=256).said
    assert not run_isolated("open('big', 'wb').write(bytes(4 * 2 ** 20))").passed
    assert run_isolated("x = bytearray(2 ** 24)", megabytes=256).passed


def test_what_the_code_has_started_ends_with_it(tmp_path):
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(1.5); open({str(mark)!r}, 'w')"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])"
    assert run_isolated(code).passed
    time.sleep(2.5)
    assert not mark.exists()


@pytest.mark.parametrize("name", REWARDS)
def test_a_line_without_what_a_reward_needs_is_an_error(name):
    if name == "number":
        pytest.importorskip("math_verify", reason="math-verify is not installed")
    with pytest.raises(ValueError, match=r"the line has no '(answer|tests)', which the reward needs; it has 'prompt'"):
        REWARDS[name]("1", {"prompt": "a"})


def test_rewards_are_found_by_name_by_file_and_by_module(tmp_path):
    (tmp_path / "mine.py").write_text("def short(text, line):\n    return float(len(text) < 3)\nLENGTH = 3\n")
    assert resolve_reward("exact") is exact
    assert resolve_reward(f"{tmp_path}/mine.py:short")("ab", {}) == 1
    assert resolve_reward("dprm.contrib.hf.rewards:exact") is exact
    with pytest.raises(ValueError, match=r"mine.py:LENGTH' is int: expected a function"):
        resolve_reward(f"{tmp_path}/mine.py:LENGTH")
