"""Our verifiers against those of well-kept task libraries, and their instances as problem files."""

import json
import random
from collections import Counter

import pytest
import torch

from dprm.data.arithmetic import apply
from dprm.hosts.dmpo import problems
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.dmpo.verifier import verify
from dprm.hosts.puma.board import NINE
from dprm.hosts.puma.host import Sudoku
from dprm.hosts.puma.puzzles import generate
from dprm.hosts.puma.verifier import solved
from dprm.hosts.puma_words.verifier import verify as verify_words

gym = pytest.importorskip("reasoning_gym")


def walk(numbers: list[int], rng: random.Random) -> tuple[str, str]:
    """Right steps until one value is left, or until none is possible: as a response, and as one expression."""
    values = [(number, str(number)) for number in numbers]
    steps = []
    while len(values) > 1:
        rng.shuffle(values)
        (a, left), (b, right), *rest = values
        possible = [sign for sign in "+-*/" if apply(a, sign, b) is not None]
        if not possible:
            break
        sign = rng.choice(possible)
        result = apply(a, sign, b)
        steps.append(f"{a}{sign}{b}={result}")
        values = [*rest, (result, f"({left}{sign}{right})")]
    return ",".join(steps), values[-1][1]


@pytest.mark.slow
def test_countdown_answers_are_solved_where_reasoning_gym_says_so():
    judge = gym.create_dataset("countdown", size=1, seed=0)
    rng, verdicts = random.Random(0), Counter()
    for numbers in (2, 3, 4):
        for given, target in problems.generate("test", 60, numbers, seed=5).listed():
            for _ in range(12):
                text, expression = walk(list(given), rng)
                reached = int(text.rpartition("=")[2])
                goal = rng.choice([target, reached, reached])
                # What was asked for may have had another number, or one more, or one fewer.
                asked = [*given[1:], rng.randint(1, 100)] if rng.random() < 0.1 else list(given)
                asked = [*asked, asked[0]] if rng.random() < 0.1 else asked[rng.random() < 0.1 :]
                theirs = judge.score_answer(expression, {"metadata": {"numbers": asked, "target": goal}}) == 1.0
                assert (verify(asked, goal, text).reward == 1.0) == theirs, (asked, goal, text, expression)
                verdicts[theirs] += 1
    assert min(verdicts.values()) > 500, verdicts


def test_sudoku_answers_are_solved_where_reasoning_gym_says_so():
    judge = gym.create_dataset("sudoku", size=1, seed=0)
    made = generate(NINE, 20, seed=9)
    rng, verdicts = random.Random(0), Counter()
    for solution, canvas in zip(made.solution, made.canvases(NINE)):
        rows = (solution.view(9, 9) + 1).tolist()
        entry = {"answer": written(rows), "metadata": {"solution": rows}}
        for _ in range(100):
            answer = solution.clone()
            for _ in range(rng.randint(0, 2)):
                answer[rng.randrange(81)] = rng.randrange(9)
            theirs = judge.score_answer(written((answer.view(9, 9) + 1).tolist()), entry) == 1.0
            assert bool(solved(answer.unsqueeze(0), canvas.unsqueeze(0), NINE)) == theirs
            verdicts[theirs] += 1
    assert min(verdicts.values()) > 500, verdicts


def written(rows: list[list[int]]) -> str:
    return "\n".join(" ".join(map(str, row)) for row in rows)


def test_instances_of_reasoning_gym_are_problem_files(tmp_path):
    countdown = gym.create_dataset(
        "countdown", size=10, seed=1, min_numbers=3, max_numbers=4, min_target=1, max_target=100
    )
    lines = [json.dumps({"metadata": entry["metadata"]}) for entry in countdown]
    (tmp_path / "countdown.jsonl").write_text("\n".join(lines))
    read, left_out = Countdown(None).read_problems(tmp_path / "countdown.jsonl")
    assert left_out == []
    wanted = [(tuple(sorted(e["metadata"]["numbers"], reverse=True)), e["metadata"]["target"]) for e in countdown]
    assert read.facts == wanted
    sudoku = gym.create_dataset("sudoku", size=3, seed=1)
    lines = [json.dumps({"metadata": entry["metadata"]}) for entry in sudoku]
    (tmp_path / "sudoku.jsonl").write_text("\n".join([*lines, '{"metadata": {}}']))
    read, left_out = Sudoku(None).read_problems(tmp_path / "sudoku.jsonl")
    assert [line.split(":")[0] for line in left_out] == ["line 4"]
    answers = torch.tensor([entry["metadata"]["solution"] for entry in sudoku]).view(3, 81) - 1
    assert solved(answers, read.canvas, NINE).all()


def test_final_numbers_of_word_problems_are_right_where_math_verify_says_so():
    judge = pytest.importorskip("math_verify")
    rng, verdicts = random.Random(0), Counter()
    for _ in range(200):
        gold = rng.randint(1, 999)
        claimed = rng.choice([gold, gold, gold + 1, gold // 10, 10 * gold % 1000])
        parsed = [judge.parse(str(number), parsing_timeout=None) for number in (gold, claimed)]
        theirs = judge.verify(*parsed, timeout_seconds=None)
        assert (verify_words([1], gold, f"1+1=2;#{claimed}").reward == 1.0) == theirs
        verdicts[theirs] += 1
    assert min(verdicts.values()) > 50
