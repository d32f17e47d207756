"""The laws by which the three rules choose, against exact enumeration."""

import itertools
import math

import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order.choice import Picks, Tilt, largest, only
from tests.draws import host_order, seeds, taught

PSI = [0.1, 0.3, 0.6, 0.9]
ROWS = 40000


def frequencies(order, m=1):
    """How often each set of positions is chosen, over many rows of one decision."""
    confidence = torch.tensor(PSI).expand(ROWS, 4)
    reading = dprm.Reading(torch.zeros(ROWS, 4, dtype=torch.int64), confidence, confidence, confidence)
    mask = order.select(reading, torch.ones(ROWS, 4, dtype=torch.bool), m, 0.5, seed=3).mask
    code = (mask.long() * torch.tensor([1, 2, 4, 8])).sum(1)
    counts = code.bincount(minlength=16).double() / ROWS
    return {tuple(i for i in range(4) if c >> i & 1): float(counts[c]) for c in range(16) if counts[c] > 0}


def learned(rule, shortlist, beta=3.0):
    order = taught(dprm.Order(phases=1, bins=4, beta=beta, ready=1, rule=rule, shortlist=shortlist), 11)
    return order, [float(v) for v in order.table().value]


def soft_bon_law(q, values, beta, n):
    """E over all qⁿ shortlists of the Soft-BoN law."""
    law = dict.fromkeys(range(len(q)), 0.0)
    for shortlist in itertools.product(range(len(q)), repeat=n):
        chance = math.prod(q[i] for i in shortlist)
        weights = [math.exp(beta * values[i]) for i in shortlist]
        for i, weight in zip(shortlist, weights, strict=True):
            law[i] += chance * weight / sum(weights)
    return law


def test_soft_bon_draws_from_the_law_of_the_theorem():
    for n in (1, 2, 4):
        order, values = learned("soft_bon", (n, n, 1))
        q = [psi / sum(PSI) for psi in PSI]
        law = soft_bon_law(q, values, 3.0, n)
        seen = frequencies(order)
        for i in range(4):
            assert abs(seen.get((i,), 0.0) - law[i]) < 0.012, (n, i)


def test_soft_bon_for_two_positions_repeats_without_replacement():
    order, values = learned("soft_bon", (2, 2, 1))
    q = [psi / sum(PSI) for psi in PSI]
    first = soft_bon_law(q, values, 3.0, 2)
    law = {}
    for i in range(4):
        rest = [0.0 if j == i else q[j] / (1 - q[i]) for j in range(4)]
        second = soft_bon_law(rest, values, 3.0, 2)
        for j in range(4):
            if j != i:
                pair = tuple(sorted((i, j)))
                law[pair] = law.get(pair, 0.0) + first[i] * second[j]
    seen = frequencies(order, 2)
    for pair, chance in law.items():
        assert abs(seen.get(pair, 0.0) - chance) < 0.012, pair


def test_shortlist_top_m_draws_without_replacement_and_takes_the_best_score():
    order, values = learned("shortlist_top_m", (2, 2, 1))
    score = [math.log(psi) + 3.0 * value for psi, value in zip(PSI, values, strict=True)]
    law = dict.fromkeys(range(4), 0.0)
    for i, j in itertools.permutations(range(4), 2):
        chance = PSI[i] / sum(PSI) * PSI[j] / (sum(PSI) - PSI[i])
        law[i if score[i] > score[j] else j] += chance
    seen = frequencies(order)
    for i in range(4):
        assert abs(seen.get((i,), 0.0) - law[i]) < 0.012, i


def test_exploring_draws_from_the_base_proposal_before_there_is_evidence_but_not_in_warm_up():
    host = (3,)
    for rule in ("shortlist_top_m", "soft_bon"):
        settings = {"phases": 1, "bins": 4, "rule": rule, "shortlist": (1, 1, 1), "explore": True}
        assert frequencies(dprm.Order(**settings, warm=1, switch=2)) == {host: 1.0}
        seen = frequencies(dprm.Order(**settings))
        for i in range(4):
            assert abs(seen[(i,)] - PSI[i] / sum(PSI)) < 0.012
        assert frequencies(dprm.Order(**{**settings, "explore": False})) == {host: 1.0}
    assert frequencies(dprm.Order(phases=1, bins=4, explore=True)) == {host: 1.0}


@given(seed=seeds, length=st.integers(1, 60), levels=st.sampled_from([1, 2, 5, 1000]))
def test_largest_is_exact_on_both_of_its_paths(seed, length, levels):
    """The quick answer of topk and the counted one must be the same set, whatever ties there are."""
    generator = torch.Generator().manual_seed(seed)
    rank = torch.randint(0, levels, (7, length), generator=generator).float()
    flags = torch.rand(7, length, generator=generator) < 0.6
    count = torch.randint(0, length + 2, (7,), generator=generator)
    expected = torch.zeros_like(flags)
    for row in range(7):
        positions = flags[row].nonzero().squeeze(1)
        best = torch.sort(rank[row, positions], descending=True, stable=True).indices[: int(count[row])]
        expected[row, positions[best]] = True
    for positive in (True, False):
        masked = only(flags, rank, positive)
        assert torch.equal(largest(masked, flags, count, min(int(count.max()), length)).mask(length), expected)
        assert torch.equal(largest(masked, flags, count, length).mask(length), expected)


@given(
    seed=seeds,
    length=st.sampled_from([2, 12, 60, 256, 300]),
    levels=st.sampled_from([1, 5, 1000, 10**6]),
    count=st.integers(1, 14),
    few=st.booleans(),
)
def test_one_count_for_all_rows_is_cut_where_a_stable_sort_would_cut(seed, length, levels, count, few):
    generator = torch.Generator().manual_seed(seed)
    rank = torch.randint(0, levels, (5, length), generator=generator).float()
    flags = torch.rand(5, length, generator=generator) < (0.1 if few else 0.9)
    expected = host_order(rank, flags, torch.full((5,), count))
    for positive in (True, False):
        picks = largest(only(flags, rank, positive), flags, count, min(count, length))
        assert torch.equal(picks.mask(length), expected)
        assert torch.equal(Picks(picks.position, picks.kept).mask(length), expected)


def test_the_counted_path_is_the_one_accelerators_take(monkeypatch):
    rank, every = torch.rand(50, 30), torch.ones(50, 30, dtype=torch.bool)
    quick = largest(rank, every, 4, 4).mask(30)
    monkeypatch.setattr("dprm.order.choice.can_look", lambda tensor: False)
    assert torch.equal(largest(rank, every, 4, 4).mask(30), quick)
    assert torch.equal(largest(rank, every, torch.full((50,), 4), 30).mask(30), quick)


def test_silence_and_fullness_of_a_table_are_known_without_looking():
    silent = dprm.Order()._tilt(torch.device("cpu"), 1.0)
    full = taught(dprm.Order(), 1)._tilt(torch.device("cpu"), 1.0)
    assert isinstance(full, Tilt)
    assert (silent.silent, silent.full, full.silent, full.full) == (True, False, False, True)
