"""Fits of several seeds: each by itself, then the average."""

import pytest

from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.evaluate.seeds import in_words, same_but_for_seed
from dprm.fit import Branched, Branching, fit
from tests.toy_host import ToyHost

HOST = ToyHost()


def notes(setting, seed, estimator="head", calls=1000):
    return {"host": "toy", "estimator": estimator, "setting": setting, "seed": str(seed), "calls": str(calls)}


def test_fits_are_seeds_of_one_setting_where_nothing_else_differs():
    fits = {
        "a": notes("HeadFit(rounds=3)", 0),
        "b": notes("HeadFit(rounds=3)", 11),
        "a at another guidance": notes("HeadFit(rounds=3)", 0),
        "other rounds": notes("HeadFit(rounds=2)", 2),
        "other estimator": notes("HeadFit(rounds=3)", 3, "leaning"),
        "dearer": notes("HeadFit(rounds=3)", 4, calls=1500),
        "as dear": notes("HeadFit(rounds=3)", 5, calls=1510),
        "of somebody else": {"host": "toy"},
    }
    assert same_but_for_seed(fits) == [["a", "b"], ["dearer", "as dear"]]
    older = {name: {"estimator": "head", "setting": f"HeadFit(seed={seed})"} for name, seed in (("a", 0), ("b", 1))}
    assert same_but_for_seed(older) == [["a", "b"]]
    assert same_but_for_seed({"a": older["a"], "c": older["a"]}) == []


def test_a_card_averages_the_seeds_of_a_fit():
    setting = Branched(Branching(states=3, alternatives=3, temper=0.0), phases=4, beta=2.0, gate=(0, 0, 8))
    policies = {}
    for seed in (0, 1):
        policy = fit(setting, HOST, calls=1000, seed=seed).policy
        # One of them never leaves the host's order: the average is between the two.
        policies[f"seed {seed}"] = policy.__class__(**{**vars(policy), "guidance": 4.0 * seed})
    card = compare(HOST, HOST.problems("test", 30), arms_of(HOST, (), policies)).card
    (entry,) = card.notes["seeds"]
    assert entry["fits"] == ["seed 0", "seed 1"]
    assert [card.arms[name].delta for name in entry["fits"]] == [0.0, 1.0]
    assert entry["delta"] == pytest.approx(0.5)
    # No problem differs from any other inside a seed, so nothing is uncertain but which seed one has.
    assert (entry["low"], entry["high"]) == (0.5, 0.5)
    assert entry["spread"] == pytest.approx(0.5**0.5)
    said = in_words(entry, "confidence")
    assert said == "branched, average of 2 seeds: +0.500 [+0.500, +0.500] to confidence, 0.707 between seeds"
    assert said in card.verdict["evidence"]
    assert "seeds" not in compare(HOST, HOST.problems("test", 4), arms_of(HOST, ())).card.notes
