"""Diagnostics on cases with known answers."""

import math

import pytest
import torch

import dprm
from dprm.evaluate.diagnostics import (
    agreement,
    progress_of,
    residual_coverage,
    selections,
    terminal_sensitivity,
)
from dprm.host.rollout import Rollout, best
from dprm.order import Stats
from tests.toy_host import ToyHost


def rollout(tokens, steps, confidence, reward=None):
    """A rollout of given tokens, steps and confidences; all else is plain."""
    tokens, steps = torch.tensor(tokens), torch.tensor(steps, dtype=torch.int32)
    rows = len(tokens)
    scores = torch.zeros(rows, 1) if reward is None else torch.tensor(reward).unsqueeze(1)
    ones = torch.ones(rows, dtype=torch.int64)
    calls = {"denoiser": ones}
    return Rollout(
        tokens, steps, torch.tensor(confidence), scores, calls, ones, ones, ones, ones, ones.float(), ones.float()
    )


# One problem: position 0 is given, two positions are revealed in step 1, one in step 2, one in step 3.
NAN = math.nan
ONE = rollout([[9, 1, 2, 3, 4]], [[0, 1, 3, 1, 2]], [[NAN, 0.9, 0.2, 0.8, 0.3]])


def test_progress_is_the_share_revealed_before():
    assert progress_of(ONE.step_map).tolist() == [[0.0, 0.0, 0.75, 0.0, 0.5]]


def test_selections_count_bins_early_and_late():
    found = selections(ONE, bins=4, late=0.5, low=0.5)
    assert found.share.tolist() == [0.25, 0.25, 0.0, 0.5]
    assert found.late.tolist() == [0.5, 0.5, 0.0, 0.0]
    assert found.late_low == 1.0
    expected = [-math.log(0.2), -math.log(0.3), NAN, -(math.log(0.9) + math.log(0.8)) / 2]
    assert found.cross_entropy.tolist() == pytest.approx(expected, nan_ok=True, rel=1e-6)
    assert found.facts()["cross_entropy"][2] is None


def test_only_whole_bins_below_the_line_are_low():
    two = rollout([[1, 1]], [[1, 2]], [[0.30, 0.40]])
    assert selections(two, bins=16, late=0.0).late_low == 0.5
    assert selections(two, bins=2, late=0.0).late_low == 0.0


def test_agreement_scores_confidence_against_answers():
    found = agreement(ONE, torch.tensor([[9, 1, 0, 0, 4]]), bins=2)
    assert found.right.tolist() == [0.5, 0.5]
    low = -(math.log(1 - 0.2) + math.log(0.3)) / 2
    high = -(math.log(0.9) + math.log(1 - 0.8)) / 2
    assert found.cross_entropy.tolist() == pytest.approx([low, high], rel=1e-6)
    with pytest.raises(ValueError, match="answers has shape"):
        agreement(ONE, torch.zeros(1, 4))


def test_residual_coverage_finds_decisions_without_evidence():
    order = dprm.Order(phases=2, bins=4, ready=10)
    stats = Stats(order.cells)
    # Ready: phase 0, bin 3, and phase 1, bin 0. Too little evidence: phase 1, bin 1.
    stats.add(torch.tensor([3, 4, 5]), torch.tensor([1.0, 0.5, 0.5]), torch.tensor([10, 10, 9]))
    order.merge(stats)
    found = residual_coverage(ONE, order, low=0.5)
    assert found.unready.tolist() == pytest.approx([0.0, 1.0, NAN, 0.0], nan_ok=True)
    assert found.low == 0.5
    assert residual_coverage(ONE, dprm.Order(phases=2, bins=4)).unready.tolist()[0] == 1.0


def test_states_count_by_their_evidence():
    order = dprm.Order(phases=1, bins=1, aux=2, ready=10)
    stats = Stats(order.cells)
    stats.add(torch.tensor([0, 1]), torch.tensor([1.0, 1.0]), torch.tensor([30, 6]))
    order.merge(stats)
    assert residual_coverage(ONE, order).unready.tolist() == pytest.approx([6 / 36])


def test_sensitivity_compares_outputs_exactly():
    base = rollout([[1, 2], [3, 4], [5, 6]], [[1, 2]] * 3, [[0.5, 0.5]] * 3)
    same_later = rollout([[1, 2], [3, 4], [5, 6]], [[2, 1]] * 3, [[0.5, 0.5]] * 3)
    one_other = rollout([[1, 2], [3, 4], [5, 0]], [[1, 2]] * 3, [[0.5, 0.5]] * 3)
    assert terminal_sensitivity({"a": base, "b": same_later}).facts() == {"identical": 1.0, "distinct": 1.0}
    found = terminal_sensitivity({"a": base, "b": one_other, "c": same_later})
    assert found.identical == pytest.approx(2 / 3)
    assert found.distinct == pytest.approx(4 / 3)
    with pytest.raises(ValueError, match="rollouts is empty"):
        terminal_sensitivity({})


def test_the_best_path_is_the_first_of_the_highest_reward_and_all_calls_are_paid():
    paths = [
        rollout([[1], [1], [1]], [[1]] * 3, [[0.5]] * 3, [0.0, 1.0, 0.5]),
        rollout([[2], [2], [2]], [[1]] * 3, [[0.5]] * 3, [1.0, 1.0, 0.1]),
        rollout([[3], [3], [3]], [[1]] * 3, [[0.5]] * 3, [1.0, 0.0, 0.7]),
    ]
    found = best(ToyHost(), paths)
    assert found.tokens.tolist() == [[2], [1], [3]]
    assert found.scores.squeeze(1).tolist() == pytest.approx([1.0, 1.0, 0.7])
    assert found.nfe.tolist() == [3, 3, 3]
    assert found.seconds.tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match="rollouts is empty"):
        best(ToyHost(), [])
