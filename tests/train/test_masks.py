"""The uniform mask law."""

import torch

from dprm.data.draws import Draws
from dprm.train.masks import RandomMasks, hide


class Counting:
    """Rows of 0 … 7 whose last six positions are the answer."""

    mask_id = 9

    def batch(self, step, rows):
        return torch.arange(8).expand(rows, 8), (torch.arange(8) >= 2).expand(rows, 8)


def test_only_answer_positions_are_masked_and_at_least_one_is():
    for step in range(20):
        seen = RandomMasks(Counting(), 200).canvases(step)
        assert bool((seen.masked.sum(1) >= 1).all())
        assert not bool(seen.masked[:, :2].any())
        assert torch.equal(seen.noisy, torch.where(seen.masked, 9, seen.clean))


def test_nothing_is_shown_at_share_zero_and_all_but_one_at_share_one():
    clean, answer = Counting().batch(0, 100)
    none = hide(clean, answer, torch.zeros(100), 9, Draws(0))
    most = hide(clean, answer, torch.ones(100), 9, Draws(0))
    assert bool((none.masked == answer).all())
    assert bool((most.masked.sum(1) == 1).all())


def test_the_number_of_masks_is_uniform_but_for_zero_which_becomes_one():
    counts = RandomMasks(Counting(), 70_000).canvases(0).masked.sum(1)
    share = torch.bincount(counts, minlength=7) / len(counts)
    # Binomial(6, t) with t ~ U(0,1) is uniform on 0 … 6.
    expected = torch.tensor([0, 2, 1, 1, 1, 1, 1]) / 7
    assert float((share - expected).abs().max()) < 0.01


def test_a_step_is_a_function_of_seed_and_step():
    one, two = RandomMasks(Counting(), 10, seed=4), RandomMasks(Counting(), 10, seed=4)
    one.canvases(0)
    assert torch.equal(one.canvases(3).noisy, two.canvases(3).noisy)
    assert not torch.equal(one.canvases(3).noisy, RandomMasks(Counting(), 10, seed=5).canvases(3).noisy)
