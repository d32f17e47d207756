"""Count rules and guards."""

import pytest
import torch
from hypothesis import given

import dprm
from dprm.decode import Cumulative, EntropyBound, Even, Factor, Fixed, HoldBack, Threshold
from tests.draws import candidates, logits, seeds

RULES = [Fixed(2), Even(4), Threshold(0.6), Factor(1.0), EntropyBound(0.7)]


def definition(rule, confidence, entropy):
    """Each rule once more, for one row, as its authors state it."""
    if not confidence:
        return 0
    if isinstance(rule, Threshold):
        return max(1, sum(c > rule.tau for c in confidence))
    if isinstance(rule, Factor):
        ranked = sorted(confidence, reverse=True)
        fits = [n for n in range(1, len(ranked) + 1) if (n + 1) * (1 - ranked[n - 1]) < rule.factor]
        return max([1, *fits])
    ranked = sorted(entropy)
    fits = [n for n in range(1, len(ranked) + 1) if sum(ranked[:n]) - max(ranked[:n]) <= rule.gamma]
    return max([1, *fits])


@given(seed=seeds)
def test_count_rules_follow_their_published_definitions_row_by_row(seed):
    reading = dprm.read(logits(seed, 5, 9, 4) * 2 + torch.rand(5, 9, 4, generator=torch.Generator().manual_seed(seed)))
    flags = candidates(seed, 5, 9)
    for rule in RULES[2:]:
        counts = rule(reading, flags, torch.zeros(5))
        for row in range(5):
            confidence = reading.confidence[row][flags[row]].tolist()
            assert counts[row] == definition(rule, confidence, reading.entropy[row][flags[row]].tolist())


@given(seed=seeds)
def test_a_row_count_does_not_depend_on_its_batch(seed):
    reading, flags = dprm.read(logits(seed, 8, 11, 5)), candidates(seed, 8, 11)
    for rule in RULES[1:]:
        step = torch.randint(0, 6, (8,), generator=torch.Generator().manual_seed(seed))
        whole = rule(reading, flags, step)
        alone = rule(reading[[3]], flags[3:4], step[3:4])
        assert whole[3] == alone[0]
        assert ((whole >= 1) | (flags.sum(1) == 0)).all()
        assert (whole <= flags.sum(1)).all()


def test_even_splits_as_evenly_as_whole_numbers_allow():
    flags, shares = torch.ones(1, 10, dtype=torch.bool), []
    for step in range(4):
        count = int(Even(4)(None, flags, torch.tensor([step])))
        shares.append(count)
        flags[0, : int((~flags).sum()) + count] = False
    assert shares == [3, 3, 2, 2]


def test_cumulative_grows_to_all_positions():
    flags = torch.ones(1, 7, dtype=torch.bool)
    assert [int(Cumulative(4)(None, flags, torch.tensor([step]))) for step in range(4)] == [2, 4, 6, 7]


def test_hold_back_goes_by_the_prediction():
    reading = dprm.read(torch.nn.functional.one_hot(torch.tensor([[0, 1, 2, 1]]), 4).float())
    every = torch.tensor([[True, True, True, False]])
    assert HoldBack((1, 2)).held(reading, every).tolist() == [[False, True, True, False]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fixed(0), "budget is 0: expected at least 1"),
        (lambda: Even(0), "steps is 0"),
        (lambda: Threshold(1.5), r"tau is 1.5: expected a finite number in \[0, 1\]"),
        (lambda: Factor(0.0), r"factor is 0.0: expected a finite number in \(0"),
        (lambda: EntropyBound(float("nan")), "gamma is nan"),
    ],
)
def test_impossible_counts_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
