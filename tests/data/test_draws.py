"""Random numbers that are named, not generated."""

import torch

from dprm.data.draws import Draws, row_hash
from dprm.data.splits import SPLITS, in_split


def test_the_same_name_gives_the_same_numbers_and_another_name_others():
    assert torch.equal(Draws(1, 2).bits(50), Draws(1, 2).bits(50))
    assert not torch.equal(Draws(1, 2).bits(50), Draws(2, 1).bits(50))


def test_arrays_of_one_sequence_differ():
    draws = Draws(0)
    assert not torch.equal(draws.bits(50), draws.bits(50))


def test_uniform_numbers_fill_the_unit_interval_evenly():
    u = Draws(7).uniform(100_000)
    assert float(u.min()) >= 0.0
    assert float(u.max()) < 1.0
    share = torch.histc(u, 10, 0, 1) / len(u)
    assert float((share - 0.1).abs().max()) < 0.005


def test_permutations_are_permutations_and_all_occur_equally_often():
    drawn = Draws(3).permutations(60_000, 3)
    assert torch.equal(drawn.sort(1).values, torch.arange(3).expand(60_000, 3))
    _, count = torch.unique(drawn, dim=0, return_counts=True)
    assert len(count) == 6
    assert float((count / 60_000 - 1 / 6).abs().max()) < 0.01


def test_a_row_hash_depends_on_every_column_and_its_place():
    rows = torch.tensor([[1, 2, 3], [1, 3, 2], [1, 2, 4], [0, 2, 3], [1, 2, 3]])
    hashed = row_hash(rows).tolist()
    assert hashed[0] == hashed[4]
    assert len(set(hashed)) == 4


def test_every_key_is_in_exactly_one_split():
    keys = Draws(5).bits(20_000)
    member = torch.stack([in_split(keys, split) for split in SPLITS])
    assert bool((member.sum(0) == 1).all())
    assert 0.79 < float(member[0].float().mean()) < 0.835
