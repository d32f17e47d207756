"""Compare orders on one host: the same problems, the same budget, the same random streams, paired intervals.

Finished batches are kept in a folder, so a comparison that is killed goes on where it was and ends in the same card,
but for the seconds, which are measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from dprm.decode.host import Host, Problems
from dprm.decode.rollout import Rollout, batches
from dprm.evaluate.bootstrap import mean_interval, paired_interval
from dprm.evaluate.card import Arm, Card
from dprm.order import Order
from dprm.order.counts import CountRule
from dprm.order.files import read_tensors, write_tensors

_KIND = "dprm.rollout"


def compare(
    host: Host,
    problems: Problems,
    orders: dict[str, Order],
    *,
    reference: str = "confidence",
    split: str = "test",
    budget: int | CountRule | None = None,
    seed: int = 0,
    rows: int = 64,
    resamples: int = 5000,
    folder: Path | None = None,
    command: str = "",
    on_batch: Callable[[str, int], None] | None = None,
) -> tuple[Card, dict[str, Rollout]]:
    """Decode all problems under every order.

    Args:
        reference: the order that the others are compared with.
        folder: where finished batches are kept; None keeps none.
        on_batch: called with (order, problems done).
    """
    if reference not in orders:
        raise ValueError(f"reference is {reference!r}: expected one of {', '.join(orders)}")
    if not len(problems):
        raise ValueError("problems is empty: there is nothing to compare")
    denoiser = host.denoiser()
    found: dict[str, Rollout] = {}
    for name, order in orders.items():
        kept = [] if folder is None else _kept(folder, name, problems, order, budget, seed)
        done = sum(len(part.reward) for part in kept)
        rest = problems[done:]
        for _, part in batches(host, rest, order, budget=budget, seed=seed, rows=rows, denoiser=denoiser):
            kept.append(part)
            done += len(part.reward)
            if folder is not None:
                _keep(folder, name, problems, order, budget, seed, kept)
            if on_batch is not None:
                on_batch(name, done)
        found[name] = Rollout.joined(kept)
    control = found[reference].reward
    arms = {}
    for name, rollout in found.items():
        delta = None if name == reference else paired_interval(rollout.reward, control, resamples, seed=seed)
        arms[name] = _arm(host, orders[name], rollout, delta, resamples, seed)
    card = Card(
        host=host.name,
        split=split,
        problems=problems.digest,
        count=len(problems),
        budget=str(host.budget if budget is None else budget),
        reference=reference,
        seed=seed,
        resamples=resamples,
        arms=arms,
        command=command,
        weights=getattr(host, "weights_digest", None),
    )
    return card, found


def _arm(
    host: Host, order: Order, rollout: Rollout, delta: tuple[float, float, float] | None, n: int, seed: int
) -> Arm:
    mean = mean_interval(rollout.reward, n, seed=seed)
    learned = order.stats is not None or bool((order.table().support > 0).any())
    return Arm(
        mean=mean.estimate,
        low=mean.low,
        high=mean.high,
        solved=float((rollout.reward >= host.solved_at).double().mean()),
        delta=None if delta is None else delta[0],
        delta_low=None if delta is None else delta[1],
        delta_high=None if delta is None else delta[2],
        nfe=float(rollout.nfe.double().mean()),
        changed=float(rollout.changed.sum() / rollout.decisions.sum().clamp(min=1)),
        ready=float(rollout.ready.sum() / rollout.picks.sum().clamp(min=1)),
        gate=float(rollout.gate.sum() / rollout.picks.sum().clamp(min=1)),
        seconds=float(rollout.seconds.double().mean()),
        policy=order.policy().digest if learned else None,
    )


def _name(problems: Problems, order: Order, budget: object, seed: int) -> str:
    """What a kept batch belongs to: change anything that matters and it is another."""
    keys = hashlib.sha256(problems.key.numpy().tobytes()).hexdigest()
    setting = (keys, order.policy().digest, str(order.explore), str(budget), str(seed))
    return hashlib.sha256("|".join(setting).encode()).hexdigest()[:16]


def _keep(
    folder: Path, name: str, problems: Problems, order: Order, budget: object, seed: int, parts: list[Rollout]
) -> None:
    whole = Rollout.joined(parts)
    tensors = {field.name: getattr(whole, field.name) for field in fields(Rollout)}
    write_tensors(folder / f"{name}.rollout", tensors, {"kind": _KIND, "of": _name(problems, order, budget, seed)})


def _kept(folder: Path, name: str, problems: Problems, order: Order, budget: object, seed: int) -> list[Rollout]:
    path = folder / f"{name}.rollout"
    if not path.is_file():
        return []
    tensors, header = read_tensors(path, _KIND)
    if header["of"] != _name(problems, order, budget, seed):
        return []
    return [Rollout(**tensors)]
