"""What `make_host` takes, and what it refuses: by name, split and row."""

import pytest
import torch

import dprm

MASK, PAD = 3, 0
ROWS = {"fit": [[1, MASK], [2, MASK]], "select": [[1, 1, MASK]], "test": [[2, 2, MASK]]}


def model(tokens):
    return torch.zeros(*tokens.shape, 4)


def made(problems, **how):
    return dprm.make_host("mine", model, MASK, problems, lambda tokens, facts: 1.0, **{"pad": PAD, **how})


def test_shorter_rows_are_padded_with_what_is_never_revealed():
    host = made({"fit": [[1, MASK], [2, 2, 2, MASK]]})
    assert host.problems("fit", 2).canvas.tolist() == [[1, MASK, PAD, PAD], [2, 2, 2, MASK]]
    # To a model that knows nothing all tokens are alike, and the first that may be revealed is taken.
    answered = dprm.decode(model, host.problems("fit", 2).canvas, mask_id=MASK, forbid=host.decoding.forbid)
    assert answered.tokens.tolist() == [[1, 1, PAD, PAD], [2, 2, 2, 1]]
    with pytest.raises(ValueError, match=r"problems\['fit'\]\[row 0\] has 2 tokens and others 4: give pad"):
        made({"fit": [[1, MASK], [2, 2, 2, MASK]]}, pad=None)


def test_a_row_without_a_mask_is_named():
    with pytest.raises(ValueError, match=r"problems\['test'\]\[row 1\] holds no mask 3: there is nothing to reveal"):
        made({**ROWS, "test": [[1, MASK], [1, 2]]})


@pytest.mark.parametrize("splits", [("fit", "select"), ("fit", "test"), ("select", "test"), ("test", "train")])
def test_splits_that_share_a_problem_are_refused(splits):
    one, other = splits
    problems = {one: [[1, MASK], [2, MASK]], other: [[0, MASK], [2, MASK]]}
    said = rf"problems\['{other}'\]\[row 1\] has the problem \d+ of problems\['{one}'\]\[row 1\]: what is fitted on"
    with pytest.raises(ValueError, match=said):
        made(problems)
    # The same canvas with other facts is another problem.
    told = {split: [(row, f"{split} {number}") for number, row in enumerate(rows)] for split, rows in problems.items()}
    assert len(made(told).problems(other, 5)) == 2


def test_a_group_belongs_to_one_split():
    group = {"fit": [7, 7], "select": [8], "test": [9]}
    assert made(ROWS, group=group).problems("fit", 2).groups.tolist() == [7, 7]
    said = r"problems\['test'\]\[row 0\] has the group 7 of problems\['fit'\]\[row 0\]"
    with pytest.raises(ValueError, match=said):
        made(ROWS, group={**group, "test": [7]})
    with pytest.raises(ValueError, match=r"group\['fit'\] has 1 entries for 2 problems"):
        made(ROWS, group={**group, "fit": [7]})
