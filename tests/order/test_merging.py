"""Shards that are lost, made again and delivered twice, in any order, add up to the bits of one process."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.order.merging import Shards, merged, merged_policies
from tests.draws import taught
from tests.order.reduce_worker import events

COUNT = 1000


def shard(number, beta=3.0):
    """What worker `number` gathers: a pure function of its number, so that a lost one can be made again."""
    stats = dprm.Stats(cells=12, beta=beta)
    stats.add(*events(number, count=20))
    return stats


def test_a_thousand_shards_of_which_a_tenth_is_lost_and_a_tenth_comes_twice():
    everything = [events(number, count=20) for number in range(COUNT)]
    alone = dprm.Stats(cells=12, beta=3.0)
    alone.add(*(torch.cat(column) for column in zip(*everything)))
    draws = random.Random(0)
    numbers = list(range(COUNT))
    lost, twice = draws.sample(numbers, COUNT // 10), draws.sample(numbers, COUNT // 10)
    deliveries = [number for number in numbers if number not in lost] + twice
    draws.shuffle(deliveries)
    total = merged([Shards.of(f"shard {number}", shard(number)) for number in deliveries])
    missing = [number for number in numbers if f"shard {number}" not in total.names]
    assert set(missing) == set(lost) - set(twice)
    assert total.stats != alone
    total = merged([total, *(Shards.of(f"shard {number}", shard(number)) for number in missing), total])
    assert total.stats == alone
    assert len(total.names) == COUNT


@given(order=st.permutations(range(6)), cut=st.integers(1, 5))
def test_any_order_and_any_bundles_give_the_same_bits(order, cut):
    shards = [Shards.of(str(number), shard(number)) for number in range(6)]
    bundles = merged([shards[number] for number in order[:cut]]), merged([shards[number] for number in order[cut:]])
    assert (bundles[1] + bundles[0]).stats == merged(shards).stats
    assert (bundles[0] + merged(shards)).names.keys() == merged(shards).names.keys()


def test_what_does_not_belong_together_is_refused():
    first, other = Shards.of("a", shard(1)), Shards.of("b", shard(2))
    with pytest.raises(ValueError, match=r"beta is 3\.0 here and 1\.0 there"):
        _ = first + Shards.of("b", shard(2, beta=1.0))
    with pytest.raises(ValueError, match="shard 'a' came with two contents"):
        _ = first + Shards.of("a", shard(2))
    with pytest.raises(ValueError, match=r"two merged files share 1 shards \(a\): merge the shards themselves"):
        _ = (first + other) + (first + Shards.of("c", shard(3)))
    with pytest.raises(ValueError, match="shards is empty"):
        merged([])
    with pytest.raises(ValueError, match="name is empty"):
        Shards.of("", shard(1))


def test_files_bring_back_names_and_bits(tmp_path):
    total = Shards.of("a", shard(1)) + Shards.of("b", shard(2))
    total.save(tmp_path / "both")
    assert Shards.load(tmp_path / "both") == total
    assert dprm.Stats.load(tmp_path / "both") == total.stats
    shard(3).save(tmp_path / "worker-3.stats")
    assert Shards.load(tmp_path / "worker-3.stats").names.keys() == {"worker-3"}


def policy(seed, **settings):
    return taught(dprm.Order(phases=2, bins=3, **settings), seed).policy(host="toy", estimator="onpolicy")


def test_policies_merge_to_the_one_that_saw_everything():
    both = merged_policies({"a": policy(1), "b": policy(2)})
    together = taught(taught(dprm.Order(phases=2, bins=3), 1), 2)
    assert both.stats == together.stats
    assert torch.equal(both.table.value, together.table().value)
    assert (both.notes["host"], both.notes["estimator"]) == ("toy", "onpolicy")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: policy(2, beta=2.0), "b does not belong to a: beta is 2.0, there 1.0"),
        (lambda: policy(2, signal="margin"), "b does not belong to a: signal is"),
        (lambda: taught(dprm.Order(phases=2, bins=3), 2).policy(host="other"), "note host is 'other', there 'toy'"),
        (lambda: policy(1), "b has the evidence of a, which would count twice"),
        (lambda: dprm.Order(phases=2, bins=3).policy(host="toy"), "b holds values without the evidence"),
    ],
)
def test_policies_that_do_not_belong_together_are_refused(other, message):
    with pytest.raises(ValueError, match=message):
        merged_policies({"a": policy(1), "b": other()})
