"""The calibration card keeps its limits, and its numbers come back."""

import json
from pathlib import Path

import pytest
import torch

from dprm.cli.calibration import chain_worlds
from dprm.evaluate.calibration import (
    GAIN_LIMIT,
    NULL_LIMIT,
    TEST,
    Coins,
    Outcome,
    Simulated,
    World,
    report,
    run,
    simulated_worlds,
)
from dprm.evaluate.population import Population
from dprm.evaluate.verdict import Verdict
from dprm.host.decoded import decoded
from dprm.theory import myopic

CARD = json.loads((Path(__file__).parents[2] / "results" / "verdict-calibration.json").read_text())
WORLDS = {world["name"]: world for world in CARD["worlds"]}
CHAINS = chain_worlds()


def test_the_committed_card_keeps_the_limits():
    assert CARD["problems"]["test"] == TEST == 2000
    for world in WORLDS.values():
        assert world["studies"] >= 200
        assert sum(world["verdicts"].values()) == world["studies"]
        assert world["apply"] == world["verdicts"]["apply"] / world["studies"]
    nulls = [world for world in WORLDS.values() if world["most"] is not None]
    gains = [world for world in WORLDS.values() if world["least"] is not None]
    assert nulls
    assert all(world["apply"] <= NULL_LIMIT == 0.05 for world in nulls)
    assert gains
    assert all(world["apply"] >= GAIN_LIMIT == 0.80 for world in gains)


def test_the_card_is_of_the_worlds_that_there_are():
    worlds = [*simulated_worlds(), *CHAINS]
    assert {name: (world["least"], world["most"]) for name, world in WORLDS.items()} == {
        world.name: (world.least, world.most) for world in worlds
    }
    # Every kind of estimator is judged where order cannot matter, where values are noise, and where there is a gain.
    assert len(CHAINS) == 2 * 4


@pytest.mark.parametrize("world", simulated_worlds(), ids=lambda world: world.name)
def test_a_small_part_of_the_simulated_studies_agrees_with_the_card(world):
    share = WORLDS[world.name]["apply"]
    # Four standard errors of so few studies; other seeds than those of the card.
    slack = 4 * (max(share * (1 - share), 0.01) / 16) ** 0.5
    assert run(world, 16, seed=CARD["seed"] + 1).apply == pytest.approx(share, abs=slack)


@pytest.mark.slow
@pytest.mark.parametrize("world", CHAINS, ids=lambda world: world.name)
def test_a_small_part_of_the_chain_studies_agrees_with_the_card(world):
    share = WORLDS[world.name]["apply"]
    slack = 4 * (max(share * (1 - share), 0.01) / 3) ** 0.5
    assert run(world, 3, seed=CARD["seed"] + 1).apply == pytest.approx(share, abs=slack)


def test_where_order_cannot_matter_the_verdict_says_so():
    verdict = CHAINS[0].study(5)
    assert verdict.verdict == "do not promote"
    assert verdict.reason == "decisions change, outputs do not"


def test_where_values_are_noise_the_policy_acts_and_is_not_applied():
    verdicts = [CHAINS[1].study(seed) for seed in range(6)]
    assert any(verdict.reason != "the policy is the host's own order" for verdict in verdicts)
    assert all(verdict.verdict != "apply" for verdict in verdicts)


def test_a_population_has_the_gain_and_the_discordance_it_is_made_for():
    host = Population(myopic(2.0), sensitive=0.03, luck=0.35)
    problems = host.problems("test", 20_000, 7)
    ones = torch.ones(20_000, 4, dtype=torch.int64)
    better, worse = host.judge(problems, ones), host.judge(problems, 0 * ones)
    assert float((better - worse).double().mean()) == pytest.approx(0.03, abs=0.01)
    assert float((better != worse).double().mean()) == pytest.approx(0.205, abs=0.012)
    assert float(worse.double().mean()) == pytest.approx(0.485, abs=0.012)


@pytest.mark.parametrize(("gain", "discordant", "shared"), [(0.0, 0.25, 0.0), (0.03, 0.2, 0.0), (0.0, 0.25, 0.5)])
def test_simulated_ways_win_and_lose_as_often_as_they_say(gain, discordant, shared):
    host = Coins()
    problems = host.problems("test", 40_000, 3)
    ways = {"host": Simulated(), **{str(n): Simulated(gain, discordant, shared, number=n) for n in (0, 1)}}
    reward = {name: host.reward(rollout.scores) for name, rollout in decoded(host, problems, ways, rows=40_000).items()}
    assert float(reward["host"].mean()) == pytest.approx(0.5, abs=0.01)
    for name in ("0", "1"):
        assert float((reward[name] - reward["host"]).mean()) == pytest.approx(gain, abs=0.01)
        assert float((reward[name] != reward["host"]).double().mean()) == pytest.approx(discordant, abs=0.01)
    # Two fits have a share of their luck in common; by chance alone they agree where both or neither turned.
    alone = 2 * discordant * (1 - discordant)
    apart = float((reward["0"] != reward["1"]).double().mean())
    assert apart == pytest.approx((1 - shared) * alone if gain == 0 else apart, abs=0.01)


def test_splits_and_seeds_of_a_population_share_no_prompt():
    for host in (Population(myopic(2.0), 0.5, 0.5), Coins()):
        keys = torch.cat(
            [host.problems(split, 500, seed).key for split in ("fit", "select", "test") for seed in (0, 1)]
        )
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
