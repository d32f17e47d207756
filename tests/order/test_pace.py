"""Whose turn it is, against the definition written out row by row."""

import math

import pytest
import torch

from dprm.order.pace import LEVELS, paced


def by_definition(confidence, candidates, budget):
    """Lists of positions, one for every row and feature."""
    rows = []
    for psi, open_, m in zip(confidence.tolist(), candidates.tolist(), budget.tolist(), strict=True):
        places = sorted((i for i in range(len(psi)) if open_[i]), key=lambda i: -psi[i])
        steps = math.ceil(len(places) / m)
        row = []
        for level in LEVELS:
            unsure = [i for i in places if psi[i] < torch.tensor(level).item()]
            for parts in (steps, 2 * steps):
                row.append(set(unsure[: math.ceil(len(unsure) / parts)]) if places else set())
        rows.append(row)
    return rows


@pytest.mark.parametrize("m", [1, 3, 8, 40])
def test_it_is_the_definition(m):
    generator = torch.Generator().manual_seed(m)
    # Many near certainty, none alike.
    confidence = 1.0 - 10.0 ** (-6.0 * torch.rand(12, 30, generator=generator))
    candidates = torch.rand(12, 30, generator=generator) < 0.7
    candidates[0] = False
    candidates[1, 1:] = False
    budget = torch.full((12,), m)
    turns = paced(confidence, candidates, budget)
    assert turns.shape == (12, 30, 2 * len(LEVELS))
    wanted = by_definition(confidence, candidates, budget)
    for row in range(12):
        for k in range(2 * len(LEVELS)):
            assert set(turns[row, :, k].nonzero().flatten().tolist()) == wanted[row][k], (row, k)


def test_at_one_position_a_step_it_is_the_surest_of_the_unsure():
    confidence = torch.tensor([[0.99995, 0.97, 0.6, 0.3]])
    turns = paced(confidence, torch.ones(1, 4, dtype=torch.bool), torch.tensor([1]))
    for k, level in enumerate(LEVELS):
        first = next(i for i in range(4) if confidence[0, i] < level)
        assert turns[0, :, 2 * k].nonzero().flatten().tolist() == [first]
        assert torch.equal(turns[..., 2 * k], turns[..., 2 * k + 1])


def test_equal_confidences_share_a_turn():
    confidence = torch.tensor([[0.5, 0.5, 0.2]])
    turns = paced(confidence, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1]))
    assert turns[0, :, 0].tolist() == [True, True, False]


def test_what_is_visible_and_what_is_sure_has_no_turn():
    confidence = torch.tensor([[1.0, 1.0, 0.5]])
    candidates = torch.tensor([[True, True, False]])
    assert not paced(confidence, candidates, torch.tensor([2])).any()


def test_a_row_that_reveals_nothing_now_is_as_one_that_reveals_one():
    confidence, candidates = torch.tensor([[0.5, 0.3, 0.2]]), torch.ones(1, 3, dtype=torch.bool)
    nothing, one = (paced(confidence, candidates, torch.tensor([budget])) for budget in (0, 1))
    assert torch.equal(nothing, one)
