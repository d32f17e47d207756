"""The PUMA study: what training along an order does, three mask laws × three orders × three widths.

Every arm decodes the same problems from the same random streams. Differences are paired on problems, in the share that
is solved: between orders inside an arm, and between arms at the same order and width.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.evaluate.audit import audit
from dprm.evaluate.bootstrap import mean_interval, paired_interval
from dprm.evaluate.compare import compare
from dprm.evaluate.study import Study
from dprm.host.host import Host
from dprm.host.progress import Progress
from dprm.host.rollout import Rollout
from dprm.hosts.puma.arms import TrainedArm, trained_arms
from dprm.hosts.puma_words import words
from dprm.hosts.registry import ENTRIES
from dprm.order import Order

ORDERS = ("random", "confidence", "entropy")
WIDTHS = (1, 2, 3)
# What the audit is told about tokens. A grid has no end and no number that comes first: -1 is no token.
TEXT: dict[str, dict[str, Any]] = {
    "puma": {"eot": -1, "digits": (-1,)},
    "puma_words": {"eot": words.EOT, "digits": words.DIGITS, "mark": words.FINAL},
}
# An arm, an order and a width.
Condition = tuple[str, str, int]


def study(
    name: str,
    weights: Mapping[str, Path],
    *,
    limit: int = 512,
    split: str = "test",
    difficulty: str | None = None,
    orders: Sequence[str] = ORDERS,
    widths: Sequence[int] = WIDTHS,
    seed: int = 0,
    rows: int = 2048,
    resamples: int = 5000,
    device: torch.device | str = "cpu",
    folder: Path,
    command: str = "",
) -> Study:
    """Decode the problems of a split with every arm.

    Args:
        name: puma or puma_words. weights: the file of every law.
        limit: how many problems. rows: how many are decoded at a time.
        folder: keeps finished batches: a study that is killed goes on where it was and ends in the same card.
    """
    if name not in TEXT:
        raise ValueError(f"host is {name!r}: expected one of {', '.join(TEXT)}")
    arms = trained_arms(name, weights)
    hosts = {law: _hosted(name, arm, difficulty, device) for law, arm in arms.items()}
    problems = next(iter(hosts.values())).problems(split, limit, seed)
    signals = {order: Order(signal=order) for order in orders}
    found: dict[Condition, Rollout] = {}
    with Progress(f"study {name}") as progress:
        total = len(hosts) * len(widths) * len(signals)
        for law, host in hosts.items():
            for width in widths:
                _, decoded = compare(
                    host,
                    problems,
                    signals,
                    reference=orders[0],
                    split=split,
                    budget=width,
                    seed=seed,
                    rows=rows,
                    # The intervals come later, of what is solved.
                    resamples=1,
                    folder=folder / f"{law}-{arms[law].digest}-width{width}",
                )
                found |= {(law, order, width): rollout for order, rollout in decoded.items()}
                solved = {order: _solved(host, rollout).mean().item() for order, rollout in decoded.items()}
                progress.say(f"{law} masks, width {width}: " + ", ".join(f"{o} {s:.1%}" for o, s in solved.items()))
                progress.show(len(found), total)
    judge = next(iter(hosts.values()))
    solved_rows = {condition: _solved(judge, rollout) for condition, rollout in found.items()}
    return Study(
        host=name,
        split=split,
        problems={"all": problems.digest},
        count=len(problems),
        seed=seed,
        resamples=resamples,
        arms={law: arm.account() for law, arm in arms.items()},
        results=[_result(found[place], place, solved_rows[place], resamples, seed) for place in found],
        differences=differences(solved_rows, resamples, seed),
        audit=[_audited(name, rollout, place, device) for place, rollout in found.items()],
        command=command,
        notes={"difficulty": difficulty, "orders": list(orders), "widths": list(widths), "difference": "share solved"},
    )


def differences(solved: Mapping[Condition, Tensor], resamples: int, seed: int) -> list[dict[str, Any]]:
    """Paired differences of the share solved, over orders inside every arm, then over arms at every order.

    Args:
        solved: [N] of the same problems, for every (arm, order, width).
    """
    laws, orders, widths = (list(dict.fromkeys(part)) for part in zip(*solved, strict=True))
    found = []
    for width in widths:
        for law in laws:
            for control, treated in combinations(orders, 2):
                delta = paired_interval(solved[law, treated, width], solved[law, control, width], resamples, seed=seed)
                place = {"over": "order", "arm": law, "width": width, "treated": treated, "control": control}
                found.append({**place, **delta._asdict()})
        for order in orders:
            for control, treated in combinations(laws, 2):
                delta = paired_interval(
                    solved[treated, order, width], solved[control, order, width], resamples, seed=seed
                )
                place = {"over": "training", "order": order, "width": width, "treated": treated, "control": control}
                found.append({**place, **delta._asdict()})
    return found


def _hosted(name: str, arm: TrainedArm, difficulty: str | None, device: torch.device | str) -> Host:
    host: Host = importlib.import_module(ENTRIES[name].module).load(arm.path, device)
    return host if difficulty is None else host.at(difficulty)


def _solved(host: Host, rollout: Rollout) -> Tensor:
    return (rollout.reward >= host.solved_at).double()


def _named(place: Condition) -> dict[str, Any]:
    return dict(zip(("arm", "order", "width"), place, strict=True))


def _result(rollout: Rollout, place: Condition, solved: Tensor, resamples: int, seed: int) -> dict[str, Any]:
    share = mean_interval(solved, resamples, seed=seed)
    costs = {"nfe": rollout.nfe.double().mean().item(), "seconds": rollout.seconds.double().mean().item()}
    reward = rollout.reward.double().mean().item()
    return {**_named(place), "solved": share.estimate, "low": share.low, "high": share.high, "reward": reward, **costs}


def _audited(name: str, rollout: Rollout, place: Condition, device: torch.device | str) -> dict[str, Any]:
    found = audit(rollout.step_map.to(device), rollout.tokens.to(device), **TEXT[name]).summary()
    return {**_named(place), **{statistic: mean._asdict() for statistic, mean in found.items() if mean.rows}}
