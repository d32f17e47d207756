"""Studies: train what has no weights, decode the same problems after every training, and judge.

Everything that can be refused is refused first: orders, weights, problems that cannot be posed. Trainings go on from
their checkpoints and decodings from the batches that are done. Shapes: S decode seeds, N problems, n samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.decode.counts import Fixed
from dprm.evaluate.audit import means_of, summarised
from dprm.evaluate.headline import headline, pairs
from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.study import EMPTY, LEARNED, Condition, Study, judged_again
from dprm.host.decoded import decoded
from dprm.host.device import checked_device
from dprm.host.engine import Engine, Serial
from dprm.host.host import Host, Problems
from dprm.host.progress import Progress
from dprm.host.rollout import Decode, Rollout
from dprm.order import Order, Policy
from dprm.order.files import claim
from dprm.order.rules import RULES
from dprm.order.signals import resolve_signal
from dprm.train.denoiser import Denoiser
from dprm.train.parallel import processes
from dprm.train.task import Task, successes
from dprm.train.trainings import Trained, Trainings
from dprm.train.transformer import Transformer


def study(
    name: str,
    task: Task,
    trainings: Trainings,
    weights: Mapping[str, Path],
    *,
    limit: int = 512,
    split: str = "select",
    difficulty: str | None = None,
    seed: int = 0,
    seeds: int = 1,
    rows: int = 512,
    resamples: int = 5000,
    device: torch.device | str = "cpu",
    folder: Path,
    on: Engine | None = None,
    command: str = "",
) -> tuple[Study, Outcomes] | None:
    """Train what has no weights, decode the same problems after every training, and judge.

    Args:
        name: of the host. task, trainings: its own. weights: given ones, by arm.
        limit: how many problems. seeds: decode seeds, `seed` first. rows: canvases decoded together.
        folder: keeps trainings and finished batches: a study that is killed goes on where it was.
        on: the engine that decodes; None: this process, which also trains.

    Processes that share the trainings (see `train.parallel`) all call this; the first decodes, the others get None.
    """
    device = checked_device(device)
    check_orders(trainings.orders)
    trainings.check(name, task, weights, folder, seed)
    # Problems need no weights: what cannot be posed is known before anything is trained.
    poser = at(task.wrap(Transformer(task.shaped(32, 1)).to(device), device), difficulty)
    problems, parts = in_parts(poser.problems(split, limit, seed), trainings)
    shared = processes()
    if shared.first:
        claim(folder)
    shared.wait()
    arms = trainings.trained(name, task, weights, folder, seed, device)
    if not shared.first:
        return None
    loads = {
        arm: partial(loaded, task, trained.path.resolve(), device, difficulty, trainings.fast)
        for arm, trained in arms.items()
    }
    hosts = {arm: load() for arm, load in loads.items()}
    engines = {arm: (on or Serial()).of(load) for arm, load in loads.items()}
    card = Study(
        host=name,
        variant=difficulty or "",
        split=split,
        problems={part: problems[first:end].digest for part, (first, end) in parts.items()},
        parts=parts,
        count=len(problems),
        seed=seed,
        seeds=list(range(seed, seed + seeds)),
        samples=trainings.samples,
        resamples=resamples,
        paired=poser.paired,
        arms={arm: trained.facts for arm, trained in arms.items()},
        results=[],
        differences=[],
        command=command,
        notes={"temperature": trainings.temperature, "usual": poser.decoding.signal.name},
    )
    return decoded_study(card, hosts, arms, trainings, problems, rows, folder, engines)


def decoded_study(
    card: Study,
    hosts: Mapping[str, Host],
    arms: Mapping[str, Trained],
    trainings: Trainings,
    problems: Problems,
    rows: int,
    folder: Path,
    engines: Mapping[str, Engine] | None = None,
) -> tuple[Study, Outcomes]:
    """The card with everything that decoding gives.

    Args:
        card: without results. hosts, arms: by training. problems: by part, as `in_parts` gives them.
        engines: by training, what decodes; None: this process.
    """
    asked = problems.copies(card.samples) if card.samples > 1 else problems
    scores: dict[str, Tensor] = {}
    kept: dict[Condition, list[Rollout]] = {}
    nfe: dict[str, Tensor] = {}
    entries, audits = [], []
    policies = {arm: Policy.load(trained.policy) for arm, trained in arms.items() if trained.policy is not None}
    orders = {
        arm: orders_of(host, trainings.orders, policies.get(arm), next(iter(policies.values()), None))
        for arm, host in hosts.items()
    }
    total = sum(map(len, orders.values())) * len(trainings.widths)
    with Progress(f"study {card.host}") as progress:
        for arm, host in hosts.items():
            ways = {order: Decode(made, trainings.temperature) for order, made in orders[arm].items()}
            for width in trainings.widths:
                wide, own = host.with_decoding(count=Fixed(width)), folder / "decoded" / f"{arm}, {width} a step"
                audited = {}
                for order, way in ways.items():
                    condition = Condition(arm, order, width)
                    how: dict[str, Any] = {"rows": rows, "folder": own, "on": (engines or {}).get(arm)}
                    runs = [decoded(wide, asked, {order: way}, seed=each, **how)[order] for each in card.seeds]
                    if card.samples == 1:
                        kept[condition] = runs
                    solved = torch.stack([successes(host, run.scores).view(-1, card.samples) for run in runs])
                    reward = torch.stack([host.reward(run.scores).view(-1, card.samples) for run in runs])
                    scores[condition.label] = torch.stack([_flat(reward), _flat(solved.double())], -1).float()
                    nfe[condition.label] = _flat(torch.stack([run.nfe.view(-1, card.samples) for run in runs]))
                    entries.append({**asdict(condition), **_price(runs)})
                    if host.audit is not None:
                        audited[order] = [
                            means_of(run.step_map, run.tokens, won.flatten(), card.samples, **host.audit)
                            for run, won in zip(runs, solved)
                        ]
                    progress.say(f"{condition.label}: solved {solved.double().mean():.1%}")
                    progress.show(len(entries), total)
                usual = audited.get(card.notes["usual"])
                audits += [
                    {**asdict(Condition(arm, order, width)), **summarised(own_means, usual, card.resamples, card.seed)}
                    for order, own_means in audited.items()
                ]
    outcomes = Outcomes(problems.key.cpu(), problems.groups.cpu(), scores, nfe)
    notes = dict(card.notes)
    usual_order = card.notes["usual"]
    heads = []
    for treated, control in pairs(list(kept), usual_order):
        near = {
            one: runs
            for one, runs in kept.items()
            if one in (treated, control) or (one.arm, one.width) == (treated.arm, treated.width)
        }
        judge = hosts[treated.arm].with_decoding(count=Fixed(treated.width))
        how = {"categories": trainings.categories, "resamples": card.resamples, "seed": card.seed}
        heads.append(headline(judge, problems, treated, control, near, usual_order, **how))
    if heads:
        notes["headline"] = heads
    return judged_again(replace(card, results=entries, audit=audits, notes=notes), outcomes), outcomes


def orders_of(host: Host, names: Sequence[str], own: Policy | None, other: Policy | None) -> dict[str, Order]:
    """The orders of a training by name; those with learned values only where it learned some.

    Args:
        own: what the training learned. other: a policy of the study, for drawing alike without values.
    """
    orders = {}
    for name in names:
        kind, _, rule = name.partition(" ")
        if kind == LEARNED:
            if own is not None:
                orders[name] = Order.from_policy(own, rule=rule or None)
        elif kind == EMPTY:
            policy = own or other
            if policy is not None:
                orders[name] = Order.from_policy(policy, rule=rule or None, guidance=0.0, explore=True)
        else:
            orders[name] = Order(signal=name)
    return orders


def check_orders(names: Sequence[str]) -> None:
    """Raise if a name is no order of a study."""
    for name in names:
        kind, _, rule = name.partition(" ")
        if kind not in (LEARNED, EMPTY):
            resolve_signal(name)
        elif rule not in ("", *RULES) or (kind == EMPTY and rule == "top_m"):
            rules = [known for known in RULES if kind == LEARNED or known != "top_m"]
            raise ValueError(f"orders has {name!r}: expected {kind} with one of {', '.join(rules)}")


def in_parts(problems: Problems, trainings: Trainings) -> tuple[Problems, dict[str, list[int]]]:
    """The problems sorted by the first part each is in, and the rows of every part: [first, end)."""
    names = [tuple(trainings.parts(facts)) for facts in problems.facts] if trainings.parts else [()] * len(problems)
    order = sorted(range(len(names)), key=lambda row: names[row][:1])
    names = [names[row] for row in order]
    parts = {"all": [0, len(order)]}
    for part in sorted({part for each in names for part in each}):
        rows = [row for row, each in enumerate(names) if part in each]
        parts[part] = [rows[0], rows[-1] + 1]
        if len(rows) != rows[-1] + 1 - rows[0]:
            raise ValueError(f"part {part!r} is not made of parts that stand beside each other")
    return problems[torch.tensor(order)], parts


def loaded(task: Task, path: Path, device: torch.device, difficulty: str | None, fast: bool = False) -> Host:
    """The host of a training; fast: with its model compiled."""
    host = task.load(path, device)
    model = host.model()
    if fast and isinstance(model, Denoiser):
        model.compile()
    return at(host, difficulty)


def at(host: Host, difficulty: str | None) -> Host:
    """The host with problems of a difficulty."""
    return host if difficulty is None else host.at(difficulty)


def _flat(columns: Tensor) -> Tensor:
    """[S,N,n] → [S·n,N]."""
    return columns.transpose(1, 2).flatten(0, 1)


def _price(runs: Sequence[Rollout]) -> dict[str, Any]:
    """Mean model calls by kind, and seconds, of an answer."""
    whole = Rollout.joined(runs)
    calls = {kind: column.double().mean().item() for kind, column in whole.calls.items()}
    return {"calls": calls, "seconds": whole.seconds.double().mean().item()}
