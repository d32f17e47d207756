"""Fits of several seeds: each by itself, then the average."""

import pytest

import dprm
from dprm.evaluate.bootstrap import paired_interval
from dprm.evaluate.compare import compare
from dprm.evaluate.seeds import same_but_for_seed, told
from dprm.fit import Branched, Branching
from tests.toy_host import ToyHost

HOST = ToyHost()


def notes(setting, estimator="head", branches=1000):
    return {"host": "toy", "estimator": estimator, "setting": setting, "branches": str(branches)}


def test_fits_are_seeds_of_one_setting_where_nothing_else_differs():
    fits = {
        "a": notes("HeadFit(rounds=3, branching=Branching(rows=64, seed=0))"),
        "b": notes("HeadFit(rounds=3, branching=Branching(rows=64, seed=11))"),
        "other rounds": notes("HeadFit(rounds=2, branching=Branching(rows=64, seed=2))"),
        "other estimator": notes("HeadFit(rounds=3, branching=Branching(rows=64, seed=3))", "leaning"),
        "dearer": notes("HeadFit(rounds=3, branching=Branching(rows=64, seed=4))", branches=1500),
        "as dear": notes("HeadFit(rounds=3, branching=Branching(rows=64, seed=5))", branches=1510),
        "of somebody else": {"host": "toy"},
    }
    assert same_but_for_seed(fits) == [["a", "b"], ["dearer", "as dear"]]


def test_a_card_averages_the_seeds_of_a_fit(tmp_path):
    orders, fits = {"confidence": dprm.Order()}, {}
    for seed in (0, 1):
        setting = Branched(Branching(states=3, alternatives=3, temper=0.0, seed=seed), phases=4, beta=2.0, ready=8)
        policy = setting.fit(HOST, HOST.problems("fit", 32), tmp_path / f"{seed}.dprm")
        # One of them never leaves the host's order: the average is between the two.
        orders[f"seed {seed}"] = dprm.Order.from_policy(policy, guidance=4.0 * seed)
        fits[f"seed {seed}"] = policy.notes
    card, found = compare(HOST, HOST.problems("test", 30), orders, fits=fits)
    (entry,) = card.notes["seeds"]
    assert entry["fits"] == ["seed 0", "seed 1"]
    assert [card.arms[name].delta for name in entry["fits"]] == [0.0, 1.0]
    assert entry["delta"] == pytest.approx(0.5)
    # No problem differs from any other inside a seed, so nothing is uncertain but which seed one has.
    assert (entry["low"], entry["high"]) == (0.5, 0.5)
    assert paired_interval(found["seed 1"].reward, found["confidence"].reward).low == 1.0
    assert told(entry, "confidence") == "branched, average of 2 seeds: +0.500 [+0.500, +0.500] to confidence"
    assert told(entry, "confidence") in card.verdict["evidence"]
    alone, _ = compare(HOST, HOST.problems("test", 4), {"confidence": dprm.Order()})
    assert "seeds" not in alone.notes
