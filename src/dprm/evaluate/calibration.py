"""How often the verdict is right: whole studies, from the choice of a setting to the verdict, many times over.

A study of simulated rewards takes k settings to the select split, tests the chosen one, writes the card and judges it.
A problem is solved by the host's order with probability 1/2; a setting wins and loses it with (d + g)/2 and (d − g)/2,
where d is the discordant share and g the gain:

    order cannot matter   outputs are the same under every order
    pure noise            d = 25 %, g = 0
    a gain                g = 3 points, at d = 20 %, 25 %, 30 %

A study of an enumerable chain does the same through the decoder: fit, decode, choose, decode, judge (`Population`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.card import Card
from dprm.evaluate.choosing import choose, problems_needed
from dprm.evaluate.compare import compare
from dprm.evaluate.measure import measure
from dprm.evaluate.population import Population
from dprm.evaluate.verdict import APPLY, VERDICTS, Verdict, judge
from dprm.fit import OnPolicy
from dprm.host.rollout import Rollout
from dprm.order import Order, Policy
from dprm.order.noise import mix

# Enough to choose: of four settings, a gain of 3 points at up to 30 % discordant pairs is missed by less than 1 %.
SELECT, TEST = 8000, 2000
GUIDANCES = (0.5, 1.0, 2.0, 4.0)
NULL_LIMIT, GAIN_LIMIT = 0.05, 0.80


@dataclass(frozen=True)
class World:
    """A kind of study, and what is expected of its verdicts.

    Attributes:
        study: from a seed to a verdict.
        least, most: limits on the share of `apply`; None where it is only shown.
        facts: what the world is made of, for the card.
    """

    name: str
    study: Callable[[int], Verdict]
    least: float | None = None
    most: float | None = None
    facts: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of the studies of one world."""

    name: str
    studies: int
    verdicts: dict[str, int]
    apply: float
    least: float | None
    most: float | None
    holds: bool | None
    facts: dict[str, Any]


def run(world: World, studies: int, seed: int = 0) -> Outcome:
    """Judge `studies` studies of a world."""
    counted = Counter(world.study(mix(seed, number)).verdict for number in range(studies))
    share = counted[APPLY] / studies
    limited = world.least is not None or world.most is not None
    holds = (world.least is None or share >= world.least) and (world.most is None or share <= world.most)
    verdicts = {verdict: counted[verdict] for verdict in VERDICTS}
    facts = world.facts or {}
    return Outcome(world.name, studies, verdicts, share, world.least, world.most, holds if limited else None, facts)


def report(outcomes: Iterable[Outcome], seed: int, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """The calibration as a card."""
    return {
        "kind": "calibration",
        "seed": seed,
        "problems": {"select": SELECT, "test": TEST},
        "settings": len(GUIDANCES),
        "worlds": [asdict(outcome) for outcome in outcomes],
        "command": command,
        "versions": versions,
    }


# ---- simulated rewards -----------------------------------------------------------------------------------------------


def simulated_worlds() -> list[World]:
    """The worlds of simulated rewards."""
    settings = len(GUIDANCES)
    nulls = [
        ("order cannot matter, straight to test", 0.0, _straight_to_test(1, 0.0)),
        ("pure noise, straight to test", 0.25, _straight_to_test(1, 0.25)),
        ("pure noise, best of four on test", 0.25, _straight_to_test(settings, 0.25)),
        ("pure noise, chosen on select", 0.25, _chosen_first(0.25, 0.0)),
    ]
    worlds = [
        World(name, study, most=NULL_LIMIT, facts={"gain": 0.0, "discordant": discordant})
        for name, discordant, study in nulls
    ]
    for discordant in (0.20, 0.25, 0.30):
        variance = discordant - 0.03**2
        facts = {"gain": 0.03, "discordant": discordant, "problems_for_80_percent": problems_needed(0.03, variance)}
        name = f"a gain of 3 points, {discordant:.0%} discordant"
        least = GAIN_LIMIT if discordant == 0.20 else None
        worlds.append(World(name, _chosen_first(discordant, 0.03), least=least, facts=facts))
    return worlds


def _straight_to_test(policies: int, discordant: float) -> Callable[[int], Verdict]:
    """Policies without any gain are taken to the test split with no choice before."""

    def study(seed: int) -> Verdict:
        control, treated = _rewards([0.0] * policies, discordant, TEST, seed)
        return judge(_card(control, treated, seed))

    return study


def _chosen_first(discordant: float, gain: float) -> Callable[[int], Verdict]:
    """Settings of half and of the full gain are chosen from on the select split; the chosen one is tested."""

    def study(seed: int) -> Verdict:
        gains = [gain / 2, gain, gain, gain / 2]
        control, treated = _rewards(gains, discordant, SELECT, mix(seed, 1))
        chosen = choose({str(index): row for index, row in enumerate(treated)}, control, seed=seed).setting
        control, treated = _rewards(gains, discordant, TEST, mix(seed, 2))
        return judge(_card(control, control[None] if chosen is None else treated[[int(chosen)]], seed, chosen is None))

    return study


def _rewards(gains: list[float], discordant: float, problems: int, seed: int) -> tuple[Tensor, Tensor]:
    """Solved or not: [n] under the host's order, and [k,n] under settings of given gains."""
    generator = torch.Generator().manual_seed(seed % 2**63)
    control = (torch.rand(problems, generator=generator) < 0.5).float()
    # Given a solved problem it is lost with d − g, given an unsolved one it is won with d + g: d discordant in all.
    gain = torch.tensor(gains).unsqueeze(1)
    turned = torch.rand(len(gains), problems, generator=generator) < discordant + torch.where(control > 0, -gain, gain)
    return control, torch.where(turned, 1 - control, control)


def _card(control: Tensor, treated: Tensor, seed: int, refused: bool = False) -> Card:
    """The card of a test, as a comparison would write it."""
    found = {"host": _rollout(control, control, 0.0)}
    for index, reward in enumerate(treated):
        found[f"policy {index}"] = _rollout(reward, control, 0.0 if refused else 0.3)
    fits = {name: {"estimator": "simulated"} for name in found if name != "host"}
    arms = measure(found, {}, "host", fits=fits, seed=seed % 2**31)
    return Card("simulated", "test", "", len(control), "1", "host", seed, 5000, arms, "")


def _rollout(reward: Tensor, control: Tensor, changed: float) -> Rollout:
    """One decision a problem; the outputs differ where the rewards do."""
    one = torch.ones(len(reward), dtype=torch.int64)
    return Rollout(
        tokens=(reward != control).long().unsqueeze(1),
        step_map=one.int().unsqueeze(1),
        confidence=torch.full((len(reward), 1), 0.5),
        reward=reward,
        nfe=one,
        decisions=one,
        changed=(torch.arange(len(reward)) < changed * len(reward)).long(),
        picks=one,
        ready=one,
        gate=one.float(),
        seconds=torch.zeros(len(reward)),
    )


# ---- enumerable chains, through the decoder --------------------------------------------------------------------------


def chain_world(
    name: str,
    host: Population,
    *,
    fit_on: Population | None = None,
    chosen_first: bool = True,
    least: float | None = None,
    most: float | None = None,
) -> World:
    """Studies of a population: a policy is fitted, its guidance chosen on select, the choice tested.

    Args:
        fit_on: where one policy for all studies is fitted; None: every study fits its own, on its own prompts.
        chosen_first: False takes the policy straight to the test, at the largest guidance.
    """
    shared = None if fit_on is None else _fitted(fit_on, 0)

    def study(seed: int) -> Verdict:
        policy = _fitted(host, seed) if shared is None else shared
        guidance = _chosen_guidance(host, policy, seed) if chosen_first else max(GUIDANCES)
        orders = {"confidence": Order(), "dprm": Order.from_policy(policy, "top_m", guidance)}
        card, _ = compare(host, host.problems("test", TEST, seed), orders, rows=TEST, seed=seed)
        return judge(card)

    facts = {"sensitive": host.sensitive, "luck": host.luck, "temperature": host.temperature}
    return World(name, study, least, most, facts)


def _chosen_guidance(host: Population, policy: Policy, seed: int) -> float:
    """What the select split chooses; 0 where nothing gains."""
    orders = {str(guidance): Order.from_policy(policy, "top_m", guidance) for guidance in GUIDANCES}
    problems = host.problems("select", SELECT, seed)
    _, found = compare(host, problems, {"confidence": Order(), **orders}, split="select", rows=SELECT, seed=seed)
    chosen = choose({name: found[name].reward for name in orders}, found["confidence"].reward, seed=seed).setting
    return 0.0 if chosen is None else float(chosen)


def _fitted(host: Population, seed: int) -> Policy:
    estimator = OnPolicy(rounds=4, prompts=32, samples=8, beta=2.0, ready=32, seed=seed)
    with TemporaryDirectory() as folder:
        return estimator.fit(host, host.problems("fit", 128, seed), Path(folder) / "policy")
