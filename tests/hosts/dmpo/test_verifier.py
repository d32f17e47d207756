"""The Countdown verifier against examples, an independent replay, and thousands of damaged answers."""

import random

import pytest

from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.verifier import verify
from tests.hosts.dmpo.brute_force import replay, solutions

NUMBERS, TARGET = (86, 28, 31, 13), 96
RIGHT = "86+28=114,31-13=18,114-18=96"


@pytest.mark.parametrize(
    ("text", "reward", "why"),
    [
        (RIGHT, 1.0, ""),
        ("31-13=18,86+28=114,114-18=96", 1.0, ""),
        ("28+86=114,31-13=18,114-18=96", 1.0, ""),
        ("86+28=115,31-13=18,115-18=97", 0.1, "86+28=115 is wrong"),
        ("86+28=114,31-13=18", 0.1, "are left"),
        ("86+28=114", 0.1, "are left"),
        ("86+28=114,31-13=18,114-18=96,96-96=0", 0.1, "not available"),
        ("86+10=96", 0.1, "uses 10, which is not available"),
        ("86+28=114,86-13=73,114-73=41", 0.1, "uses 86"),
        ("86-28=58,58-31=27,27-13=14", 0.1, "result is 14, not 96"),
        ("13-28=0,86+31=117,117-0=117", 0.1, "is wrong"),
        ("86+28=114,31-13=18,114-18=96,", 0.0, "step 4"),
        ("086+28=114", 0.0, "step 1"),
        ("86+28", 0.0, "step 1"),
        ("", 0.0, "step 1"),
        ("86+28=?14", 0.0, "step 1"),
        ("96", 0.0, "step 1"),
        ("86+28+31=145", 0.0, "step 1"),
        ("-86+28=58", 0.0, "step 1"),
        ("86+28=11400", 0.0, "step 1"),
        ("８６+28=114", 0.0, "step 1"),
        ("86+28=114\n", 0.0, "step 1"),
    ],
)
def test_examples(text, reward, why):
    verdict = verify(NUMBERS, TARGET, text)
    assert verdict.reward == reward
    assert (verdict.reason == "") == (why == "")
    assert why in verdict.reason


def test_limits_of_the_values():
    assert verify((100, 99), 100, "100*99=9900").reward == 0.1
    assert verify((100, 100, 1), 1, "100*100=10000,10000/1=10000").reward == 0.0
    assert verify((5, 5, 7), 7, "5-5=0,7+0=7").reward == 1.0
    assert verify((5, 5, 7), 7, "5-5=0,7/0=7").reward == 0.1
    assert verify((7, 2), 3, "7/2=3").reward == 0.1


def test_every_solution_that_exists_is_accepted():
    for numbers, target in problems.generate("test", 25, 3, seed=2).listed():
        for text in solutions(numbers, target):
            assert verify(numbers, target, text).reward == 1.0


def test_damaged_answers_pass_only_when_an_independent_replay_says_so():
    rng = random.Random(0)
    rejected = 0
    for numbers in (2, 3, 4, 5, 6):
        made = problems.generate("test", 200, numbers, seed=6)
        for (given, target), row in zip(made.listed(), made.tokens.tolist()):
            text = canvas.read_response(row)
            for _ in range(6):
                damaged = damage(text, rng)
                reward = verify(given, target, damaged).reward
                assert (reward == 1.0) == replay(given, target, damaged), damaged
                assert reward in (0.0, 0.1, 1.0)
                rejected += reward < 1.0
    assert rejected > 5_000


def damage(text: str, rng: random.Random) -> str:
    """Change, drop, add or exchange a character, or drop, repeat or exchange whole steps."""
    kind = rng.randrange(6)
    place = rng.randrange(len(text))
    steps = text.split(",")
    if kind == 0:
        return text[:place] + rng.choice(canvas.CHARACTERS) + text[place + 1 :]
    if kind == 1:
        return text[:place] + text[place + 1 :]
    if kind == 2:
        return text[:place] + rng.choice(canvas.CHARACTERS) + text[place:]
    if kind == 3:
        other = rng.randrange(len(text))
        letters = list(text)
        letters[place], letters[other] = letters[other], letters[place]
        return "".join(letters)
    if kind == 4:
        steps.pop(rng.randrange(len(steps)))
        return ",".join(steps)
    rng.shuffle(steps)
    return ",".join([*steps, rng.choice(steps)][: len(steps) + rng.randrange(2)])
