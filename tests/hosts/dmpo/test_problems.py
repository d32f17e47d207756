"""Countdown problems: solvable by construction, the same everywhere, in splits that never meet."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dprm.data.splits import SPLITS
from dprm.hosts.dmpo import canvas, problems
from tests.hosts.dmpo.brute_force import replay, solutions


@pytest.mark.parametrize("numbers", [2, 3, 4, 5, 6])
def test_every_problem_comes_with_a_right_solution_in_the_admissible_range(numbers):
    made = problems.generate("train", 800, numbers, seed=3)
    for (given_numbers, target), row in zip(made.listed(), made.tokens.tolist()):
        assert len(given_numbers) == numbers
        assert all(1 <= number <= 100 for number in given_numbers)
        assert 1 <= target <= 100
        assert replay(given_numbers, target, canvas.read_response(row))


def test_reference_solutions_are_among_those_found_by_trying_everything():
    made = problems.generate("train", 60, 3, seed=4)
    for (numbers, target), row in zip(made.listed(), made.tokens.tolist()):
        assert canvas.read_response(row) in set(solutions(numbers, target))


def test_all_four_operators_occur():
    text = "".join(canvas.read_response(row) for row in problems.generate("train", 2_000, 4).tokens.tolist())
    assert set("+-*/") < set(text)


def test_the_larger_operand_and_the_larger_independent_result_come_first():
    for row in problems.generate("train", 2_000, 4, seed=5).tokens.tolist():
        steps = [step.replace("=", " = ") for step in canvas.read_response(row).split(",")]
        parsed = [[int(x) for x in "".join(c if c.isdigit() else " " for c in step).split()] for step in steps]
        assert all(left >= right for left, right, _ in parsed)
        if sorted(parsed[2][:2]) == sorted([parsed[0][2], parsed[1][2]]):
            first, second = parsed[0], parsed[1]
            assert first[2] >= second[2] or first[2] in second[:2]


def test_a_seed_gives_the_same_problems_and_another_seed_others():
    one, two, other = (problems.generate("test", 200, 3, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one, two))
    assert not torch.equal(one.tokens, other.tokens)


def test_splits_never_share_a_problem():
    found = {
        split: {
            (tuple(sorted(numbers)), target)
            for seed in (0, 1)
            for numbers, target in problems.generate(split, 3_000, 2, seed).listed()
        }
        for split in SPLITS
    }
    assert all(not found[a] & found[b] for a in SPLITS for b in SPLITS if a < b)


def test_distinct_problems_are_distinct_as_multisets():
    listed = problems.generate("test", 300, 2, distinct=True).listed()
    assert len({(tuple(sorted(numbers)), target) for numbers, target in listed}) == 300


def test_more_distinct_problems_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="count is 5000"):
        problems.generate("test", 5_000, 2, distinct=True)


@given(st.permutations([3, 14, 15, 92, 65, 35]), st.integers(1, 100))
@settings(max_examples=25, deadline=None)
def test_the_key_of_a_problem_does_not_depend_on_its_spelling(numbers, target):
    aim = torch.tensor([target])
    usual = torch.tensor([[3, 14, 15, 92, 65, 35]])
    assert torch.equal(problems.key(torch.tensor([numbers]), aim), problems.key(usual, aim))


def test_training_sequences_are_a_function_of_the_step():
    one = problems.CountdownData({2: 50, 3: 50}, seed=1)
    two = problems.CountdownData({2: 50, 3: 50}, seed=1)
    clean, answer = one.batch(7, 16)
    assert torch.equal(clean, two.batch(7, 16)[0])
    assert clean.shape == answer.shape == (16, canvas.LENGTH)
    assert answer.sum(1).tolist() == [canvas.RESPONSE] * 16


def test_impossible_sizes_are_named():
    with pytest.raises(ValueError, match="numbers is 7"):
        problems.generate("train", 1, 7)
    with pytest.raises(ValueError, match="split is 'dev'"):
        problems.generate("dev", 1, 3)


@given(st.lists(st.integers(1, 100), min_size=2, max_size=6), st.integers(1, 100))
@settings(max_examples=50, deadline=None)
def test_a_prompt_shows_every_number_and_the_target(numbers, target):
    row = canvas.blank_canvases([(numbers, target)])[0].tolist()
    slots = [row[start : start + canvas.SLOT] for start in range(0, canvas.PROMPT, canvas.SLOT)]
    shown = [int("".join(str(token) for token in slot if token != canvas.BLANK) or "0") for slot in slots]
    assert shown[:-1] == sorted(numbers, reverse=True) + [0] * (6 - len(numbers))
    assert shown[-1] == target
    assert row[canvas.PROMPT :] == [canvas.MASK] * canvas.RESPONSE
