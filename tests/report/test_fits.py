"""The cost curve shows every fit, those of one price side by side, and joins the means of the prices."""

import dataclasses
import re
from itertools import pairwise

import pytest

from dprm.report.fits import fits, price_groups
from tests.report.drawn import across, down, groups, words


def with_fits(card, *fits):
    """A card of some fits: estimator, model calls and gain of each."""
    arms = {"confidence": card.arms["confidence"]}
    for number, (estimator, calls, gain) in enumerate(fits):
        spent = {"estimator": estimator, "rollouts": "64", "branches": "8", "calls": str(calls)}
        of_gain = {"delta": gain, "delta_low": gain - 0.02, "delta_high": gain + 0.02, "guidance": 30.0}
        arms[f"fit {number}"] = dataclasses.replace(card.arms["random"], fit=spent, **of_gain)
    return dataclasses.replace(card, arms=arms)


def curve(card, *fits_of_card):
    return fits(with_fits(card, *fits_of_card), {}).figures[0]


SEEDS = [("head", 12_400 + 20 * seed, 0.02 * seed) for seed in range(5)]


def test_fits_of_one_estimator_within_fifteen_per_cent_have_one_price(card):
    several = [("head", 1_000, 0.1), ("head", 1_150, 0.1), ("head", 1_151, 0.1), ("leaning", 1_000, 0.1)]
    arms = with_fits(card, *several).arms
    found = price_groups({name: arm for name, arm in arms.items() if arm.fit})
    assert sorted([arm.fit["calls"] for arm in group] for group in found) == [["1000"], ["1000", "1150"], ["1151"]]


@pytest.mark.parametrize(
    "several",
    [
        [*SEEDS, ("head", 1_246, 0.0), ("head", 149_000, 0.1), ("branched", 12_400, 0.0)],
        [("head", 12_000, 0.1), ("leaning", 12_000, 0.1), ("onpolicy", 12_100, 0.1)],
    ],
)
def test_no_interval_covers_another(card, several):
    figure = curve(card, *several)
    points = groups(figure, "mark-symbol")[0]
    assert len(points) == len(several)
    places = sorted(across(point) for point in points)
    assert min(right - left for left, right in pairwise(places)) > 5
    assert max(places) < 360
    rules = next(group for group in groups(figure, "mark-rule") if len(group) == len(several))
    assert sorted(map(across, rules)) == places


def test_a_line_joins_the_means_of_the_prices_of_each_estimator_that_has_two(card):
    peers = [("policy_gradient", 30_000, 0.1), ("policy_gradient", 31_000, 0.3), ("leaning", 3_000, 0.05)]
    figure = curve(card, *SEEDS, ("head", 1_246, 0.0), ("head", 149_000, 0.08), *peers)
    (line,) = [path for group in groups(figure, "mark-line") for path in group]
    vertices = [[float(n) for n in pair.split(",")] for pair in re.findall(r"[ML]([-\d.]+,[-\d.]+)", line.get("d"))]
    points = [(across(point), down(point)) for point in groups(figure, "mark-symbol")[0]]
    seeds = sorted(points)[2:7]
    assert len(vertices) == 3
    assert vertices[1] == pytest.approx([sum(values) / 5 for values in zip(*seeds)], abs=0.1)
    assert "Lines join the means of each price." in figure.caption
    assert "side by side" in figure.caption
    plain = curve(card, ("head", 1_000, 0.1), ("leaning", 3_000, 0.1))
    assert not groups(plain, "mark-line")
    assert "Lines" not in plain.caption
    assert "side by side" not in plain.caption


def test_an_estimator_that_is_new_to_the_page_is_drawn_too(card):
    figure = curve(card, ("head", 1_000, 0.1), ("an estimator of tomorrow", 3_000, 0.1))
    assert "an estimator of tomorrow" in words(figure)
    assert len(groups(figure, "mark-symbol")[0]) == 2


def test_the_price_of_a_fit_is_its_model_calls_however_they_were_spent(card):
    figure = curve(card, ("head", 10_000, 0.1), ("leaning", 80_000, 0.1))
    assert "model calls of the fit" in words(figure)
    (row, _) = fits(with_fits(card, ("head", 10_000, 0.1), ("leaning", 80_000, 0.1)), {}).tables[0].rows
    assert row[1:6] == ["head", "10,000", "64", "8", "0"]


def test_seeds_stand_with_their_average_and_their_spread(card):
    fitted = with_fits(card, *SEEDS)
    assert [table.title for table in fits(fitted, {}).tables] == ["Fits"]
    entry = {"estimator": "head", "fits": ["fit 0", "fit 1"], "delta": 0.01, "low": -0.02, "high": 0.04}
    notes = {"seeds": [{**entry, "spread": 0.0123}, entry]}
    known, older = fits(dataclasses.replace(fitted, notes=notes), {}).tables[1].rows
    assert known == ["head", "2", "+0.010 [-0.020, +0.040]", "0.012", "fit 0, fit 1"]
    assert older == ["head", "2", "+0.010 [-0.020, +0.040]", "–", "fit 0, fit 1"]
