"""Random numbers that belong to a row."""

import torch
from hypothesis import given

from dprm.order.noise import Stream, mix, mix_rows, row_seeds
from tests.draws import seeds

CPU = torch.device("cpu")


def uniform(seed, rows, count, progress=0.3, use=1, turn=0):
    return Stream(seed, progress, rows, CPU).log_uniform(count, use, turn).exp()


def test_numbers_are_uniform_and_strictly_inside_the_unit_interval():
    u = uniform(7, 512, 2048)
    assert u.min() > 0
    assert u.max() < 1
    counts = (u * 100).long().view(-1).bincount(minlength=100).double()
    expected = u.numel() / 100
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert 60 < chi_square < 150  # 99 degrees of freedom
    assert abs(u.mean() - 0.5) < 1e-3
    assert abs(u.var() - 1 / 12) < 1e-3


def correlation(a, b):
    return float(torch.corrcoef(torch.stack([a.reshape(-1), b.reshape(-1)]))[0, 1])


def test_rows_positions_steps_seeds_and_uses_are_uncorrelated():
    u = uniform(7, 256, 1024)
    size = u.numel() ** -0.5
    others = {
        "next position": (u[:, :-1], u[:, 1:]),
        "next row": (u[:-1], u[1:]),
        "another seed": (u, uniform(8, 256, 1024)),
        "another step": (u, uniform(7, 256, 1024, progress=0.31)),
        "another use": (u, uniform(7, 256, 1024, use=2)),
        "another turn": (u, uniform(7, 256, 1024, turn=1)),
        "seeds in sequence": (uniform(torch.arange(256), 256, 1024)[:-1], uniform(torch.arange(256), 256, 1024)[1:]),
        "products": ((u[:, :-2] - 0.5) * (u[:, 1:-1] - 0.5), u[:, 2:]),
    }
    for name, (a, b) in others.items():
        assert abs(correlation(a, b)) < 5 * size, name


@given(seed=seeds)
def test_a_row_with_its_own_seed_draws_the_same_in_any_batch(seed):
    own = torch.tensor([5, seed, 9])
    progress = torch.tensor([0.1, 0.7, 0.2])
    whole = uniform(own, 3, 40, progress)
    alone = uniform(own[1:2], 1, 40, 0.7)
    assert torch.equal(whole[1], alone[0])
    assert torch.equal(uniform(own, 3, 90, progress)[:, :40], whole)


def test_derived_row_seeds_are_distinct_and_reproducible():
    derived = row_seeds(3, 10000, CPU)
    assert len(derived.unique()) == 10000
    assert torch.equal(derived, row_seeds(3, 10000, CPU))
    assert not torch.equal(derived, row_seeds(4, 10000, CPU))


def test_mixing_a_vector_is_mixing_each_number():
    words = [0, 1, 2**40, 12345]
    vector = mix_rows(torch.tensor(words), 99)
    assert [int(v) & (2**64 - 1) for v in vector] == [_reference(w, 99) for w in words]
    assert mix(1, 2) != mix(2, 1)


def _reference(seed, word):
    """splitmix64 in plain integers, the seed being the state."""
    mask = 2**64 - 1
    state = ((seed ^ word) + 0x9E3779B97F4A7C15) & mask
    state = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ state >> 27) * 0x94D049BB133111EB) & mask
    return state ^ state >> 31
