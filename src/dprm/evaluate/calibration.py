"""How often the verdict is right: whole studies, from the choice of a setting to the verdict, many times over.

A study of simulated rewards takes k settings to the select split, tests the chosen one beside its control of shuffled
values, and judges the card that `compare` makes of it. A problem is solved by the host's order with probability 1/2; a
setting wins and loses it with (d + g)/2 and (d − g)/2, where d is the discordant share and g the gain:

    order cannot matter   outputs are the same under every order
    pure noise            d = 25 %, g = 0
    a gain                g = 3 points, at d = 20 %, 25 %, 30 %

A study of an enumerable chain does the same through the decoder: fit, decode, choose, decode, judge (`Population`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from dprm.decode.decoding import Decoding
from dprm.decode.loop import Model
from dprm.evaluate.ablations import SHUFFLED, ablation_name
from dprm.evaluate.arms import Contender, arms_of
from dprm.evaluate.card import Card
from dprm.evaluate.choosing import choose, problems_needed
from dprm.evaluate.compare import compare
from dprm.evaluate.population import Population, uniform_of
from dprm.evaluate.protocol import settle
from dprm.evaluate.verdict import APPLY, FALL_BACK, VERDICTS, Verdict, judge
from dprm.fit.estimators import Fitted, estimator, fit
from dprm.host.decoded import decoded
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.rollout import CALLS, Rollout
from dprm.order.noise import mix, mix_rows
from dprm.order.policy import Policy

# Enough to choose: of four settings, a gain of 3 points at up to 30 % discordant pairs is missed by less than 1 %.
SELECT, TEST = 8000, 2000
SETTINGS = 4
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
        "settings": SETTINGS,
        "worlds": [asdict(outcome) for outcome in outcomes],
        "command": command,
        "versions": versions,
    }


# ---- simulated rewards -----------------------------------------------------------------------------------------------


class Coins(Host):
    """Problems that half of all answers solve: the one token of an answer says whether it does."""

    name, domain = "simulated", "coins"
    decoding = Decoding(mask_id=2)
    weights = "none"

    def model(self) -> Model:
        return torch.nn.Identity()

    def problems(self, split: str, count: int, seed: int = 0) -> Problems:
        key = mix_rows(torch.arange(count), mix(seed, SPLITS.index(split))) & (2**62 - 1)
        return Problems(torch.full((count, 1), 2), key, range(count))

    def judge(self, problems: Problems, tokens: Tensor) -> Tensor:
        return tokens.float()


@dataclass(frozen=True)
class Simulated:
    """A way of answering that wins and loses problems by chance.

    Attributes:
        gain, discordant: g and d; with d = 0 it is the reference itself.
        shared: share of its chances that all ways have in common, as fits of one estimator do.
        number: of its own chances. changed: share of the decisions that it makes otherwise.
    """

    gain: float = 0.0
    discordant: float = 0.0
    shared: float = 0.0
    number: int = 0
    changed: float = 0.0

    def answer(self, host: Host, problems: Problems, seed: int, model: Model) -> Rollout:
        """One decision a problem; the outputs differ where the rewards do."""
        solved = uniform_of(mix_rows(problems.key, 1)) < 0.5
        common = uniform_of(mix_rows(problems.key, 2)) < self.shared
        own = uniform_of(mix_rows(problems.key, 4, self.number))
        chance = torch.where(common, uniform_of(mix_rows(problems.key, 3)), own)
        # Given a solved problem it is lost with d − g, given an unsolved one it is won with d + g: d discordant in all.
        turned = chance < self.discordant + torch.where(solved, -self.gain, self.gain)
        tokens = (solved ^ turned).long().unsqueeze(1)
        once = torch.ones_like(problems.key)
        return Rollout(
            tokens=tokens,
            step_map=once.int().unsqueeze(1),
            confidence=torch.full((len(once), 1), 0.5),
            scores=host.scores(problems, tokens),
            calls={CALLS: once},
            decisions=once,
            changed=(torch.arange(len(once)) < self.changed * len(once)).long(),
            picks=once,
            ready=once,
            gate=once.float(),
            seconds=torch.zeros(len(once)),
        )

    def spec(self) -> Any:
        return ["simulated", asdict(self)]


def simulated_worlds() -> list[World]:
    """The worlds of simulated rewards."""
    nulls: list[tuple[str, float, Callable[[int], Verdict]]] = [
        ("order cannot matter, straight to test", 0.0, _straight_to_test(1, 0.0)),
        ("pure noise, straight to test", 0.25, _straight_to_test(1, 0.25)),
        ("pure noise, best of four on test", 0.25, _straight_to_test(SETTINGS, 0.25)),
        ("pure noise, chosen on select", 0.25, _chosen_first(0.25, 0.0)),
        ("pure noise, average of three seeds", 0.25, _averaged(3, 0.25)),
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
        return judge(_tested([Simulated(0.0, discordant, number=n, changed=0.3) for n in range(policies)], seed))

    return study


def _chosen_first(discordant: float, gain: float) -> Callable[[int], Verdict]:
    """Settings of half and of the full gain are chosen from on the select split; the chosen one is tested."""
    settings = [Simulated(g, discordant, number=n, changed=0.3) for n, g in enumerate((gain / 2, gain, gain, gain / 2))]
    ways = {"host": Simulated(), **{str(n): setting for n, setting in enumerate(settings)}}

    def study(seed: int) -> Verdict:
        host = Coins()
        answers = decoded(host, host.problems("select", SELECT, seed), ways, rows=SELECT)
        rewards = {name: host.reward(rollout.scores) for name, rollout in answers.items()}
        control = rewards.pop("host")
        chosen = choose(rewards, control, seed=seed % 2**31).setting
        return judge(_tested([Simulated() if chosen is None else settings[int(chosen)]], seed))

    return study


def _averaged(seeds: int, discordant: float) -> Callable[[int], Verdict]:
    """Fits without any gain that differ in their seed, and have half of their luck in common, are averaged."""

    def study(seed: int) -> Verdict:
        fits = [Simulated(0.0, discordant, shared=0.5, number=n, changed=0.3) for n in range(seeds)]
        (average,) = _tested(fits, seed).notes["seeds"]
        return Verdict(APPLY if average["low"] > 0 else FALL_BACK, "the interval of the average over seeds")

    return study


def _tested(settings: list[Simulated], seed: int) -> Card:
    """The card of settings on the test split, each beside its control, which has its discordance and no gain."""
    host, arms = Coins(), {"host": Contender(Simulated())}
    for n, setting in enumerate(settings):
        name = f"policy {n}"
        arms[name] = Contender(setting, {"estimator": "simulated", "setting": "simulated", "seed": str(n)})
        control = Simulated(0.0, setting.discordant, number=1000 + n, changed=setting.changed)
        arms[ablation_name(name, SHUFFLED)] = Contender(control, ablates=name)
    return compare(host, host.problems("test", TEST, seed), arms, split="test", seeds=(seed % 2**31,), rows=TEST).card


# ---- enumerable chains, through the decoder --------------------------------------------------------------------------

# Of the fits on chains: small ones, because there are hundreds of them. A fit that serves all studies has more: a table
# is not used before its values are larger than they can be off.
_CALLS, _SHARED = {"onpolicy": 4096, "head": 8192}, {"onpolicy": 65_536, "head": 8192}
_SETTINGS: dict[str, dict[str, Any]] = {
    "onpolicy": {"prompts": 512, "samples": 8, "beta": 0.5, "gate": (0, 0, 32)},
    "head": {"rounds": 2, "reach": 1},
}


def chain_world(
    name: str,
    host: Population,
    learner: str,
    *,
    fit_on: Population | None = None,
    chosen_first: bool = True,
    least: float | None = None,
    most: float | None = None,
) -> World:
    """Studies of a population: a policy is fitted, its guidance chosen on select, the choice tested.

    Args:
        learner: the estimator.
        fit_on: where one policy for all studies is fitted; None: every study fits its own, on its own prompts.
        chosen_first: False takes the policy straight to the test, at a large guidance.
    """
    shared = None if fit_on is None else cache(partial(_fitted, fit_on, learner, 0, _SHARED[learner]))

    def study(seed: int) -> Verdict:
        fitted = _fitted(host, learner, seed, _CALLS[learner]) if shared is None else shared()
        strengths = estimator(learner, **_SETTINGS[learner]).strengths(fitted.policy)
        if chosen_first:
            settled = settle(
                host,
                host.problems("select", SELECT, seed),
                {learner: fitted},
                {learner: strengths},
                rows=SELECT,
                seed=seed % 2**31,
            )
            policy, shuffled = settled.policy, settled.shuffled
        else:
            # So strong that noise changes decisions: a policy that changes none puts no verdict to the test.
            strongest = 10.0 * max(strengths, default=0.0)
            policy, shuffled = replace(fitted.policy, guidance=strongest, rule="top_m"), fitted.shuffled
            shuffled = None if shuffled is None else replace(shuffled, guidance=strongest, rule="top_m")
        controls: Mapping[str, Policy] = {} if shuffled is None else {"dprm": shuffled}
        arms = arms_of(host, (), {"dprm": policy}, controls, ablate=True, seed=seed % 2**31)
        problems = host.problems("test", TEST, seed)
        return judge(compare(host, problems, arms, split="test", seeds=(seed % 2**31,), rows=TEST).card)

    facts = {"sensitive": host.sensitive, "luck": host.luck, "temperature": host.decoding.temperature}
    return World(name, study, least, most, {**facts, "estimator": learner})


def _fitted(host: Population, learner: str, seed: int, calls: int) -> Fitted:
    return fit(estimator(learner, **_SETTINGS[learner]), host, calls=calls, seed=seed % 2**31, rows=2048)
