"""The calibration card keeps its limits, and its numbers come back."""

import json
from pathlib import Path

import pytest
import torch

from dprm.cli.calibration import chain_worlds
from dprm.evaluate.calibration import (
    GAIN_LIMIT,
    NULL_LIMIT,
    Outcome,
    World,
    report,
    run,
    simulated_worlds,
)
from dprm.evaluate.population import Population
from dprm.evaluate.verdict import Verdict
from dprm.theory import myopic

CARD = json.loads((Path(__file__).parents[2] / "results" / "verdict-calibration.json").read_text())
WORLDS = {world["name"]: world for world in CARD["worlds"]}


def test_the_committed_card_keeps_the_limits():
    assert CARD["problems"]["test"] == 2000
    for world in WORLDS.values():
        assert world["studies"] >= 200
        assert sum(world["verdicts"].values()) == world["studies"]
        assert world["apply"] == world["verdicts"]["apply"] / world["studies"]
    nulls = [world for world in WORLDS.values() if world["most"] is not None]
    gains = [world for world in WORLDS.values() if world["least"] is not None]
    assert len(nulls) == 7
    assert all(world["apply"] <= NULL_LIMIT == 0.05 for world in nulls)
    assert len(gains) == 2
    assert all(world["apply"] >= GAIN_LIMIT == 0.80 for world in gains)


def test_the_card_is_of_the_worlds_that_there_are():
    assert list(WORLDS) == [world.name for world in [*simulated_worlds(), *chain_worlds()]]


@pytest.mark.parametrize("world", simulated_worlds(), ids=lambda world: world.name)
def test_a_small_part_of_the_simulated_studies_agrees_with_the_card(world):
    share = WORLDS[world.name]["apply"]
    # Four standard errors of 60 studies; other seeds than those of the card.
    slack = 4 * (max(share * (1 - share), 0.01) / 60) ** 0.5
    assert run(world, 60, seed=CARD["seed"] + 1).apply == pytest.approx(share, abs=slack)


@pytest.mark.parametrize("place", range(4))
def test_a_small_part_of_the_chain_studies_agrees_with_the_card(place):
    world = chain_worlds()[place]
    share = WORLDS[world.name]["apply"]
    slack = 4 * (max(share * (1 - share), 0.01) / 4) ** 0.5
    assert run(world, 4, seed=CARD["seed"] + 1).apply == pytest.approx(share, abs=slack)


def test_where_order_cannot_matter_the_verdict_says_so():
    insensitive = chain_worlds()[0]
    assert insensitive.study(5).verdict == "do not promote"
    assert insensitive.study(5).reason == "decisions change, outputs do not"


def test_a_population_has_the_gain_and_the_discordance_it_is_made_for():
    host = Population(myopic(2.0), sensitive=0.03, luck=0.35)
    problems = host.problems("test", 20_000, 7)
    ones = torch.ones(20_000, 4, dtype=torch.int64)
    better, worse = host.reward(problems, ones), host.reward(problems, 0 * ones)
    assert float((better - worse).mean()) == pytest.approx(0.03, abs=0.01)
    assert float((better != worse).double().mean()) == pytest.approx(0.205, abs=0.012)
    assert float(worse.mean()) == pytest.approx(0.485, abs=0.012)


def test_splits_and_seeds_of_a_population_share_no_prompt():
    host = Population(myopic(2.0), 0.5, 0.5)
    keys = torch.cat([host.problems(split, 500, seed).key for split in ("fit", "select", "test") for seed in (0, 1)])
    assert len(keys.unique()) == len(keys)


def test_a_missed_limit_is_said():
    always = World("always", lambda seed: Verdict("apply", ""), most=0.05)
    outcome = run(always, 3)
    assert (outcome.apply, outcome.holds) == (1.0, False)
    shown = World("shown", lambda seed: Verdict("fall back", ""))
    assert run(shown, 3).holds is None
    card = report([outcome], 0, "dprm audit --calibrate", {})
    assert card["worlds"][0]["holds"] is False
    assert isinstance(outcome, Outcome)


def test_the_page_shows_the_numbers_of_the_card():
    page = (Path(__file__).parents[2] / "docs" / "verdict.md").read_text()
    for world in WORLDS.values():
        assert f"| {world['name']} | {world['studies']:,} | {world['apply']:.1%} |" in page
