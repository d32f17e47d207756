"""The zoo of host signals, one definition each."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order import Halton, LeftToRight, NoisyConfidence, PositionWeighted
from dprm.order.signals import halton_ranks
from tests.draws import SIGNALS, candidates, logits, seeds, taught


def order_of(signal, x, flags, **how):
    """The full order in which one row is revealed, position by position."""
    order, sequence, flags = dprm.Order(signal=signal), [], flags.clone()
    reading = dprm.read(x)
    for _ in range(int(flags.sum())):
        mask = order.select(reading, flags, 1, 0.5, **how).mask
        sequence.append(int(mask.nonzero()[0, 1]))
        flags &= ~mask
    return sequence


def test_each_signal_ranks_by_its_definition():
    x = torch.tensor([[[2.0, 0, 0], [3.0, 2.9, 0], [1.0, 0.9, 0.8], [4.0, 0, 0]]])
    p = torch.softmax(x[0], -1)
    every = torch.ones(1, 4, dtype=torch.bool)
    top = p.topk(2, -1).values
    entropy = -(p * p.log()).sum(-1)

    def falling(value):
        return value.sort(descending=True).indices.tolist()

    assert order_of("confidence", x, every) == falling(p.amax(-1))
    assert order_of("margin", x, every) == falling(top[:, 0] - top[:, 1])
    assert order_of("entropy", x, every) == falling(-entropy)
    assert order_of("uncertainty", x, every) == falling(1 - p.amax(-1))
    assert order_of("odds", x, every) == falling(p.amax(-1))
    assert order_of("left_to_right", x, every) == [0, 1, 2, 3]
    assert order_of(PositionWeighted(decay=5.0), x, every) == [0, 1, 2, 3]
    assert order_of(PositionWeighted(decay=0.0), x, every) == falling(p.amax(-1))
    assert order_of(lambda reading: reading.margin**2, x, every) == falling(top[:, 0] - top[:, 1])


@given(seed=seeds, signal=st.sampled_from(SIGNALS))
def test_signals_look_at_masked_positions_only(seed, signal):
    """What stands at a position that is no candidate changes nothing."""
    x, flags = logits(seed, 4, 12, 5), candidates(seed, 4, 12)
    other = torch.where(flags[..., None], x, logits(seed + 7, 4, 12, 5))
    order = taught(dprm.Order(signal=signal), seed)
    first = order.select(dprm.read(x), flags, 2, 0.5, seed=1).mask
    assert torch.equal(first, order.select(dprm.read(other), flags, 2, 0.5, seed=1).mask)


@given(seed=seeds, signal=st.sampled_from(["confidence", "margin", "entropy", "uncertainty"]))
def test_signals_without_a_sense_of_place_follow_a_permutation_of_positions(seed, signal):
    # Continuous logits: at a tie the left one wins, and a permutation moves what is left.
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 10, 6, generator=generator)
    flags = torch.rand(3, 10, generator=generator) < 0.6
    permutation = torch.randperm(10, generator=generator)
    order = dprm.Order(signal=signal)
    plain = order.select(dprm.read(x), flags, 3, 0.5).mask
    moved = order.select(dprm.read(x[:, permutation]), flags[:, permutation], 3, 0.5).mask
    assert torch.equal(moved, plain[:, permutation])


def test_random_order_is_uniform_and_differs_by_row_and_by_step():
    rows, length = 4000, 6
    reading = dprm.read(torch.zeros(rows, length, 3))
    every = torch.ones(rows, length, dtype=torch.bool)
    order = dprm.Order(signal="random")
    first = order.select(reading, every, 1, 0.0, seed=5).mask.int().argmax(1)
    counts = first.bincount(minlength=length).float()
    assert ((counts - rows / length).abs() < 5 * (rows / length) ** 0.5).all()
    later = order.select(reading, every, 1, 0.5, seed=5).mask.int().argmax(1)
    assert abs((first == later).float().mean() - 1 / length) < 0.05


def test_a_tilted_random_order_draws_from_the_tilted_law():
    """With ψ = 1, adding βR̂ to a Gumbel variate and taking the largest draws ∝ exp(βR̂)."""
    order = taught(dprm.Order(phases=1, bins=4, beta=3.0, signal="random", ready=1), 11)
    rows = 20000
    confidence = torch.tensor([0.1, 0.3, 0.6, 0.9]).expand(rows, 4)
    reading = dprm.Reading(torch.zeros(rows, 4, dtype=torch.int64), confidence, confidence, confidence)
    picked = order.select(reading, torch.ones(rows, 4, dtype=torch.bool), 1, 0.5, seed=2).mask.float().mean(0)
    law = torch.softmax(3.0 * order.table().value, 0).float()
    torch.testing.assert_close(picked, law, atol=0.015, rtol=0)


def test_halton_visits_every_cell_once_and_spreads_out():
    ranks = halton_ranks(8, 8)
    assert sorted(ranks) == list(range(64))
    first = [ranks.index(k) for k in range(4)]
    assert len({(cell // 8 // 4, cell % 8 // 4) for cell in first}) >= 3  # nearly every quadrant in four steps
    x, every = torch.zeros(1, 66, 3), torch.ones(1, 66, dtype=torch.bool)
    order = order_of(Halton(8, 8, offset=1), x, every)
    assert order[:4] == [cell + 1 for cell in first]
    assert order[-2:] == [0, 65]


def test_left_to_right_yields_where_the_correction_is_worth_the_slope():
    order = taught(dprm.Order(phases=1, bins=2, beta=1.0, guidance=40.0, ready=1, signal=LeftToRight(slope=1.0)), 4)
    best = int(order.table().value.argmax())
    confidence = torch.tensor([[0.75 if best == 0 else 0.25] * 3 + [0.25 if best == 0 else 0.75]])
    reading = dprm.Reading(torch.zeros(1, 4, dtype=torch.int64), confidence, confidence, confidence)
    gap = float(order.table().value.max() - order.table().value.min()) * 40.0
    chosen = int(order.select(reading, torch.ones(1, 4, dtype=torch.bool), 1, 0.5).mask.int().argmax())
    assert chosen == (3 if gap > 3.0 else 0)


def test_unusable_signals_are_refused():
    with pytest.raises(ValueError, match=r"signal is 'certainty': expected one of confidence, .*uncertainty"):
        dprm.Order(signal="certainty")
    with pytest.raises(TypeError, match="signal is 3"):
        dprm.Order(signal=3)
    reading, every = dprm.read(torch.zeros(2, 3, 4)), torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"signal\(reading\)\[row 0, position 0\] is -1.0"):
        dprm.Order(signal=lambda reading: reading.confidence * 0 - 1).select(reading, every, 1, 0.5)
    with pytest.raises(ValueError, match=r"signal\(reading\) has shape \(2,\)"):
        dprm.Order(signal=lambda reading: reading.confidence[:, 0]).select(reading, every, 1, 0.5)


def test_noisy_confidence_is_confidence_at_the_end_and_without_randomness():
    x = logits(3, 1, 16, 5)
    every, p = torch.ones(1, 16, dtype=torch.bool), dprm.read(x)
    quiet, noisy = NoisyConfidence(0.0), NoisyConfidence(2.0)
    own = dprm.Order(signal="confidence").select(p, every, 5, 0.0).mask
    assert torch.equal(dprm.Order(signal=quiet).select(p, every, 5, 0.0, seed=1).mask, own)
    assert torch.equal(dprm.Order(signal=noisy).select(p, every, 5, 1.0, seed=1).mask, own)
    drawn = [dprm.Order(signal=noisy).select(p, every, 5, 0.0, seed=seed).mask for seed in range(8)]
    assert len({tuple(mask.flatten().tolist()) for mask in drawn}) > 1
    with pytest.raises(ValueError, match="randomness"):
        NoisyConfidence(-1.0)


def test_noise_of_confidence_is_that_of_the_row_and_of_its_own_progress():
    x = logits(4, 3, 16, 5)
    every, progress, seed = torch.ones(3, 16, dtype=torch.bool), torch.tensor([0.0, 0.5, 0.9]), torch.tensor([5, 6, 7])
    order = dprm.Order(signal=NoisyConfidence(1.0))
    whole = order.select(dprm.read(x), every, 3, progress, seed=seed).mask
    for row in range(3):
        part = slice(row, row + 1)
        alone = order.select(dprm.read(x[part]), every[part], 3, progress[part], seed=seed[part]).mask
        assert torch.equal(alone, whole[part])


def test_a_name_may_set_the_number_of_a_signal():
    assert dprm.Order(signal="noisy_confidence:0.1").signal == NoisyConfidence(0.1)
    assert dprm.Order(signal="halton:8").signal == Halton(height=8)
    for wrong in ("noisy_confidence:much", "confidence:1", "halton:0.5"):
        with pytest.raises(ValueError, match="expected NAME or NAME:NUMBER"):
            dprm.Order(signal=wrong)
