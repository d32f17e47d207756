"""Rewards that are ready to name: functions of (answer text, line of the prompt file), in [0, 1].

exact     the answer is the line's "answer", spaces and case aside
number    the last number of the answer equals that of the line's "answer", as math-verify judges it
tests     the function in the answer passes the line's "tests", run in a process of its own with limits
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dprm.contrib.hf.isolation import run_isolated
from dprm.host.finding import attribute

Reward = Callable[[str, Mapping[str, Any]], Any]
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:/\d+)?%?")
_FENCE = re.compile(r"```(?:python|py)?\s*\n(.*?)(?:```|\Z)", re.S)


def exact(text: str, line: Mapping[str, Any]) -> float:
    """1 if the answer is "answer", or one of them where it is a list."""
    wanted = _needed(line, "answer")
    listed = wanted if isinstance(wanted, list) else [wanted]
    return float(_plain(text) in {_plain(str(each)) for each in listed})


def number(text: str, line: Mapping[str, Any]) -> float:
    """1 if the last number of the answer is mathematically equal to the last number of "answer".

    What stands in the last \\boxed{…}, or behind ####, counts before anything else, as GSM8K and MATH write it.
    """
    try:
        from math_verify import parse, verify
    except ImportError:
        raise ValueError('reward number needs math-verify: `pip install "dprm[tasks]"`') from None
    wanted, got = last_number(str(_needed(line, "answer"))), last_number(text)
    if wanted is None:
        raise ValueError(f"answer is {line['answer']!r}: it holds no number")
    if got is None:
        return 0.0
    # Its own time limits need signals, which only the main thread of a process has.
    return float(verify(parse(wanted, parsing_timeout=None), parse(got, parsing_timeout=None), timeout_seconds=None))


def passes_tests(text: str, line: Mapping[str, Any]) -> float:
    """1 if the code of the answer passes "tests": lines of asserts, or a list of them.

    The code is that of the first ``` block, or the whole answer; "before" is put in front of it, such as the head of
    the function that the prompt had begun.
    """
    listed = _needed(line, "tests")
    asserts = "\n".join(map(str, listed)) if isinstance(listed, list) else str(listed)
    fenced = _FENCE.search(text)
    code = f"{line.get('before', '')}{fenced[1] if fenced else text}"
    return float(run_isolated(f"{code}\n\n{asserts}\n").passed)


REWARDS: dict[str, Reward] = {"exact": exact, "number": number, "tests": passes_tests}


def resolve_reward(reward: str | Reward) -> Reward:
    """A reward by its name here, by `package.module:function` or `path.py:function`, or itself."""
    if not isinstance(reward, str):
        return reward
    if reward in REWARDS:
        return REWARDS[reward]
    if ":" not in reward:
        names = ", ".join(REWARDS)
        raise ValueError(f"reward is {reward!r}: expected {names}, package.module:function or path.py:function")
    function: Reward = attribute(reward)
    if not callable(function):
        raise ValueError(f"reward {reward!r} is {type(function).__name__}: expected a function of (text, line)")
    return function


def last_number(text: str) -> str | None:
    """The last number of a text, as written but for commas; that of \\boxed{…} or behind #### where there is one."""
    marked = re.findall(r"\\boxed\{([^{}]*)\}|####\s*([^\n]+)", text)
    listed = _NUMBER.findall(" ".join(marked[-1]) if marked else text)
    return listed[-1].replace(",", "") if listed else None


def _needed(line: Mapping[str, Any], name: str) -> Any:
    if name not in line:
        raise ValueError(f"the line has no {name!r}, which the reward needs; it has {', '.join(map(repr, line))}")
    return line[name]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
