"""Evidence that adds up to the same bits, however it is gathered."""

import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order import Cells, Stats
from tests.draws import seeds
from tests.order.reduce_worker import events, learner, observed

BETA = 3.0


def gathered(cell, reward, beta=BETA):
    stats = dprm.Stats(cells=12, beta=beta)
    stats.add(cell, reward)
    return stats


@given(seed=seeds, cuts=st.lists(st.integers(0, 300), max_size=4), beta=st.sampled_from([0.1, 1.0, 8.0, 30.0]))
def test_any_order_and_any_sharding_give_the_same_bits(seed, cuts, beta):
    cell, reward = events(seed)
    whole = gathered(cell, reward, beta)
    shuffled = torch.randperm(300, generator=torch.Generator().manual_seed(seed))
    edges = [0, *sorted(cuts), 300]
    shards = [gathered(cell[shuffled][a:b], reward[shuffled][a:b], beta) for a, b in itertools.pairwise(edges)]
    total = dprm.Stats(cells=12, beta=beta)
    for shard in reversed(shards):
        total = shard + total
    assert total == whole
    a, b, c = gathered(*events(1)), gathered(*events(2)), gathered(*events(3))
    assert (a + b) + c == a + (b + c) == c + b + a


@given(seed=seeds, beta=st.sampled_from([0.5, 1.0, 8.0, 25.0]))
def test_sums_agree_with_float64_arithmetic(seed, beta):
    cell, reward = events(seed)
    n, s, q = gathered(cell, reward, beta).sums
    y = torch.exp(beta * (reward.double() - 1.0))
    for index in range(12):
        mine = y[cell == index]
        assert n[index] == len(mine)
        assert s[index].item() == pytest.approx(mine.sum().item(), rel=1e-9)
        assert q[index].item() == pytest.approx((mine**2).sum().item(), rel=1e-6, abs=1e-17)


def test_a_billion_events_in_one_cell_do_not_saturate():
    stats = dprm.Stats(cells=4, beta=1.0)
    stats.add(torch.tensor([2, 2]), torch.tensor([0.7, 0.5]), count=10**9 // 2)
    n, s, _ = stats.sums
    assert stats.count[2] == 10**9
    mean = (math.exp(0.7 - 1) + math.exp(0.5 - 1)) / 2
    assert float(s[2] / n[2]) == pytest.approx(mean, rel=1e-7)
    stats.add(torch.tensor([2]), torch.tensor([0.7]))
    assert stats.count[2] == 10**9 + 1


def test_a_full_cell_is_an_error_and_changes_nothing():
    stats = dprm.Stats(cells=2, beta=1.0)
    stats.add(torch.tensor([1]), torch.tensor([1.0]), count=2**31)
    before = stats.moments.clone()
    with pytest.raises(OverflowError, match="cell 1 is full"):
        stats.add(torch.tensor([1]), torch.tensor([1.0]), count=2**31)
    assert torch.equal(stats.moments, before)


@pytest.mark.parametrize(
    ("cell", "reward", "message"),
    [
        ([0, 12], [0.5, 0.5], r"cell\[row 1\] is 12: there are 12 cells"),
        ([0, -1], [0.5, 0.5], r"cell\[row 1\] is -1"),
        ([0, 1], [0.5, 1.5], r"reward\[row 1\] is 1.5: outside the declared reward_range \[0, 1\]"),
        ([0, 1], [float("nan"), 0.5], r"reward\[row 0\] is nan"),
        ([0, 1], [0.5, float("inf")], r"reward\[row 1\] is inf"),
        ([0, 1], [0.5], "cell and reward have shapes"),
    ],
)
def test_bad_events_are_named_and_nothing_is_added(cell, reward, message):
    stats = gathered(*events(0))
    before = stats.moments.clone()
    with pytest.raises(ValueError, match=message):
        stats.add(torch.tensor(cell), torch.tensor(reward))
    assert torch.equal(stats.moments, before)


def test_stats_of_different_meaning_do_not_add():
    with pytest.raises(ValueError, match=r"cannot be added: beta is 3.0 here and 1.0 there"):
        _ = gathered(*events(0)) + dprm.Stats(cells=12, beta=1.0)
    with pytest.raises(ValueError, match="cells is"):
        _ = Stats(Cells(2, 6), 1.0) + Stats(Cells(1, 12), 1.0)
    with pytest.raises(ValueError, match="reward_range is"):
        _ = Stats(12, 1.0) + Stats(12, 1.0, (0.0, 2.0))


def test_forgetting_fades_every_moment_alike():
    stats = gathered(*events(4))
    faded = stats.forget(0.25)
    torch.testing.assert_close(faded.sums, stats.sums * 0.75, rtol=1e-12, atol=1e-12)
    assert stats.forget(0.0) == stats
    assert stats.forget(1.0) == stats.empty()


def test_files_bring_back_the_same_bits(tmp_path):
    stats = gathered(*events(5))
    stats.save(tmp_path / "worker.stats")
    assert dprm.Stats.load(tmp_path / "worker.stats") == stats
    (tmp_path / "cut").write_bytes((tmp_path / "worker.stats").read_bytes()[:-9])
    with pytest.raises(ValueError, match="not a readable dprm file"):
        dprm.Stats.load(tmp_path / "cut")


@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2, 4])
def test_any_number_of_processes_that_sync_has_the_bits_of_one(tmp_path, world):
    # Fresh interpreters: a fork of a process in which torch has started threads can hang.
    command = [sys.executable, "-m", "tests.order.reduce_worker"]
    places = [str(tmp_path / "rendezvous"), str(tmp_path)]
    root = Path(__file__).parents[2]
    workers = [subprocess.Popen([*command, str(rank), str(world), *places], cwd=root) for rank in range(world)]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * world
    alone = learner()
    for turn in range(3):
        for rank in range(world):
            observed(alone, turn, rank, world)
    for rank in range(world):
        assert dprm.Stats.load(tmp_path / f"{rank}.stats") == gathered(*events(6))
        assert dprm.Policy.load(tmp_path / f"{rank}.dprm").stats == alone.stats
