"""The whole life of a learned order in one call: fit, choose on select, compare, judge.

    learned = dprm.learn(host, estimator="head", calls=50_000)      learned.policy, .account, .card

The test split is a decision, not a default: without `test` the card is of the select split, on which the choice was
made, and its verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dprm.evaluate.arms import arms_of
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from dprm.evaluate.protocol import Account, Settled, settle
from dprm.fit.estimators import Fitted, estimator, fit
from dprm.fit.paper import PAPER
from dprm.host.engine import Engine
from dprm.host.host import Host
from dprm.order.policy import Policy

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Learned:
    """What `learn` gives.

    Attributes:
        policy: to deploy; at guidance 0 where nothing was found, it is the host's own order.
        shuffled: the control of a head. fits: of every estimator, before the choice.
        account: what was tried and taken. card: the comparison, with its verdict.
    """

    policy: Policy
    shuffled: Policy | None
    fits: Mapping[str, Fitted]
    account: Account
    card: Card


def learn(
    host: Host,
    estimator: str | Sequence[str] = "head",
    calls: int = 50_000,
    *,
    select: int = 1000,
    test: int | None = None,
    seed: int = 0,
    rows: int = 64,
    folder: Path | str | None = None,
    on: Engine | None = None,
    on_progress: Progress | None = None,
    **settings: Any,
) -> Learned:
    """Learn an order for a host.

    Args:
        estimator: name, or several of which one is taken.
        calls: model calls that every estimator may take, about; the choice on select comes on top and is counted.
        select: problems that choose. test: problems to look at once, in the end; None: the card is of select.
        rows: canvases decoded together; changes the time, not the result.
        folder: keeps what is done, and gets `policy.dprm`, `shuffled.dprm`, `account.json` and `card.json`.
        on: the engine that does the work, such as `dprm.contrib.ray.Ray`; None: this process.
        on_progress: called with (what is being done, how far, of how much).
        settings: of the estimators, such as phases, bins, beta, rounds.
    """
    home = None if folder is None else Path(folder)
    names = [estimator] if isinstance(estimator, str) else list(estimator)
    fits, settled = fit_and_settle(
        host,
        names,
        calls,
        select=select,
        seed=seed,
        rows=rows,
        folder=home,
        on=on,
        on_progress=on_progress,
        settings=settings,
    )
    split, count = ("select", select) if test is None else ("test", test)
    policies = {"dprm": settled.policy}
    shuffled = {} if settled.shuffled is None else {"dprm": settled.shuffled}
    arms = arms_of(host, policies=policies, shuffled=shuffled, ablate=True, seed=seed)
    comparison = compare(
        host,
        host.problems(split, count, seed),
        arms,
        split=split,
        seeds=(seed,),
        rows=rows,
        folder=None if home is None else home / "compare",
        on=on,
        on_batch=None if on_progress is None else lambda name, done: on_progress(name, done, count),
    )
    if home is not None:
        settled.policy.save(home / "policy.dprm")
        if settled.shuffled is not None:
            settled.shuffled.save(home / "shuffled.dprm")
        settled.account.save(home / "account.json")
        comparison.save(home / "card.json")
    return Learned(settled.policy, settled.shuffled, fits, settled.account, comparison.card)


def _fit_progress(on_progress: Progress, name: str, calls: int, done: int, what: str) -> None:
    on_progress(name, done, max(calls, done))


def fit_and_settle(
    host: Host,
    names: Sequence[str],
    calls: int,
    *,
    select: int,
    seed: int = 0,
    rows: int = 64,
    folder: Path | None = None,
    on: Engine | None = None,
    guidances: tuple[float, ...] | None = None,
    rule: str | None = None,
    on_progress: Progress | None = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Fitted], Settled]:
    """Fit with every estimator, then choose on the select split; see `learn`.

    Args:
        guidances: what to try of each policy; None: what its estimator suggests.
        rule: how the policy is deployed; None: the largest scores, and of the paper's controller its own rule.
    """
    letter = PAPER in names
    if letter and len(names) > 1:
        raise ValueError(f"estimator has {PAPER} among {len(names)}: it is shown beside others, not chosen among them")
    estimators = {name: estimator(name, **dict(settings or {})) for name in names}
    fits = {}
    for name, each in estimators.items():
        fits[name] = fit(
            each,
            host,
            calls=calls,
            seed=seed,
            rows=rows,
            folder=None if folder is None else folder / "pieces",
            on=on,
            on_progress=None if on_progress is None else partial(_fit_progress, on_progress, name, calls),
        )
    strengths = {name: guidances or each.strengths(fits[name].policy) for name, each in estimators.items()}
    problems = host.problems("select", select, seed)
    settled = settle(
        host,
        problems,
        fits,
        strengths,
        rule=rule or (None if letter else "top_m"),
        regardless=letter,
        rows=rows,
        seed=seed,
        folder=None if folder is None else folder / "select",
        on=on,
        on_batch=None if on_progress is None else lambda name, done: on_progress(name, done, len(problems)),
    )
    return fits, settled
