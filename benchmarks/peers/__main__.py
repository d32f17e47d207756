"""Peers at equal model calls: `python -m benchmarks.peers HOST --calls 10000 --seeds 2 --out results/peers-HOST.json`.

Every method that learns may take the same number of model calls for its fit, on the same features, with every seed; its
strength is chosen on the same select problems by the same protocol, and what is chosen decodes the same test problems
once. Methods that learn nothing stand beside them. The card has the gain of every seed and of their mean, and the
within-state R² of every learned value on states of the select split. Finished parts are kept in a folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.entropy_bound import matched
from benchmarks.peers.policy_gradient import PolicyGradient
from benchmarks.peers.stable_token import StableToken
from benchmarks.peers.within import branches_of, within_state
from dprm.evaluate.bootstrap import difference_interval
from dprm.evaluate.card import versions
from dprm.evaluate.outcomes import Outcomes, beside
from dprm.evaluate.protocol import settle
from dprm.fit import Estimator, Fitted, fit
from dprm.fit.cost import Cost
from dprm.fit.estimators import estimator
from dprm.host.decoded import decoded
from dprm.host.host import Host, Problems
from dprm.host.identity import model_word
from dprm.host.rollout import Decode, Rollout, Way
from dprm.order import Order, Policy
from dprm.order.files import write_whole
from dprm.train.task import successes

KIND = "peers"
# By name: what the method is told about answers, and its estimator.
LEARNERS: dict[str, tuple[str, Callable[[], Estimator]]] = {
    "head": ("reward of branches", partial(estimator, "head")),
    "onpolicy": ("reward of trajectories", partial(estimator, "onpolicy")),
    # Small rounds, so that the calls that a fit may take are used up.
    "policy gradient (UPO)": ("reward of trajectories", partial(PolicyGradient, prompts=32)),
    "path likelihood (SAS)": ("none: likelihood of the path", partial(PolicyGradient, prompts=32, path=True)),
    "stable token (TraceLock)": ("none: whether a token stays", StableToken),
}
SIGNALS = ("margin", "entropy", "random")
BOUND = "entropy bound"


def learned(
    name: str, host: Host, posed: Problems, calls: int, seed: int, rows: int, folder: Path
) -> tuple[Policy, Policy, Cost]:
    """What a method learned, what the select split made of it, and the price; from the folder if it is there."""
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    kept = [folder / f"{plain}-{seed}-{what}.dprm" for what in ("fitted", "settled")]
    if not all(path.is_file() for path in kept):
        method = LEARNERS[name][1]()
        fitted: Fitted = fit(method, host, calls=calls, seed=seed, rows=rows, folder=folder / "pieces")
        strengths = {name: method.strengths(fitted.policy)}
        # Controls are the business of a comparison.
        bare = replace(fitted, shuffled=None)
        settled = settle(host, posed, {name: bare}, strengths, rows=rows, seed=seed, folder=folder / "select")
        for path, policy in zip(kept, (fitted.policy, settled.policy), strict=True):
            policy.save(path)
    policies = [Policy.load(path) for path in kept]
    return policies[0], policies[1], Cost.of_notes(policies[0].notes)


def compared(
    host: Host,
    methods: list[str],
    *,
    calls: int,
    seeds: int,
    select: int,
    limit: int,
    branched: int,
    rows: int,
    folder: Path,
    split: str = "test",
    on_part: Callable[[str], None] = print,
) -> tuple[dict[str, Any], Outcomes]:
    """The card and the outcomes of every method; see the module."""
    chosen, posed = host.problems("select", select, 0), host.problems(split, limit, 0)
    own = host.decoding.signal.name
    signals = [name for name in SIGNALS if name != own]
    ways: dict[str, list[Way]] = {own: [Decode()]}
    ways |= {name: [Decode(Order(signal=name))] for name in signals}
    native = decoded(host, chosen, {own: Decode()}, rows=rows, folder=folder / "select")[own]
    bounded, spent = matched(host, chosen, float(native.nfe.double().mean()), rows)
    ways[BOUND] = [bounded]
    about: dict[str, list[dict[str, Any]]] = {BOUND: [{"gamma": bounded.gamma, "calls": spent}]}
    branches, price = branches_of(host, chosen[:branched], rows)
    on_part(f"within-state R²: {branches.count:,} alternatives, {price.calls:,} model calls")
    for name in methods:
        for seed in range(seeds):
            fitted, settled, cost = learned(name, host, chosen, calls, seed, rows, folder)
            ways.setdefault(name, []).append(Decode(Order.from_policy(settled)))
            entry = {"seed": seed, "calls": cost.calls, "guidance": settled.guidance, "policy": settled.digest[:16]}
            entry["within"] = round(within_state(host, fitted, branches), 5)
            about.setdefault(name, []).append(entry)
            on_part(f"{name}, seed {seed}: {cost}; guidance {settled.guidance:g}; within-state R² {entry['within']}")
    runs: dict[str, list[Rollout]] = {}
    for name, each in ways.items():
        for number, way in enumerate(each):
            arm = name if len(each) == 1 else f"{name}, seed {number}"
            runs.setdefault(name, []).append(
                decoded(host, posed, {arm: way}, rows=rows, folder=folder / "compared")[arm]
            )
        on_part(f"{name}: solved {_solved(host, runs[name]):.1%}")
    rewards = {name: torch.stack([host.reward(run.scores) for run in each]) for name, each in runs.items()}
    rows_of = [_row(host, name, runs[name], rewards, own, about.get(name, []), posed) for name in ways]
    card = {
        "kind": KIND,
        "host": host.name,
        "variant": host.variant,
        "decoding": host.decoding.words(),
        "split": split,
        "count": len(posed),
        "problems": posed.digest,
        "select": len(chosen),
        "calls": calls,
        "seeds": seeds,
        "reference": own,
        "weights": model_word(host),
        "branches": branches.count,
        "methods": rows_of,
        "versions": versions(),
    }
    return card, Outcomes.of(posed, runs)


def _row(
    host: Host,
    name: str,
    runs: list[Rollout],
    rewards: dict[str, Tensor],
    own: str,
    about: list[dict[str, Any]],
    posed: Problems,
) -> dict[str, Any]:
    """One method: its gain with every seed, and of the mean over seeds, problem by problem."""

    def difference(values: Tensor) -> dict[str, float]:
        told = difference_interval(values, rewards[own].mean(0), paired=host.paired, groups=posed.groups.cpu())
        return {end: round(value, 6) for end, value in zip(("delta", "low", "high"), told, strict=True)}

    row: dict[str, Any] = {"method": name, "solved": round(_solved(host, runs), 6)}
    row["told"] = LEARNERS[name][0] if name in LEARNERS else "nothing is learned"
    row["calls_problem"] = round(float(torch.stack([run.nfe for run in runs]).double().mean()), 4)
    if name != own:
        row |= difference(rewards[name].mean(0))
        row["fits"] = [
            {**(about[number] if number < len(about) else {}), **difference(rewards[name][number])}
            for number in range(len(runs))
        ]
    return row


def _solved(host: Host, runs: list[Rollout]) -> float:
    return float(torch.stack([successes(host, run.scores) for run in runs]).double().mean())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.partition("\n")[0])
    parser.add_argument("host")
    parser.add_argument("--difficulty")
    parser.add_argument("--width", type=int)
    parser.add_argument("--calls", type=int, default=20_000, help="model calls of every fit")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--select", type=int, default=500)
    parser.add_argument("--limit", type=int, default=1000, help="test problems")
    parser.add_argument("--branched", type=int, default=128, help="select problems whose states are branched for R²")
    parser.add_argument("--methods", default=",".join(LEARNERS))
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--compile", action="store_true", help="bfloat16 and fused")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    told = parser.parse_args(arguments)
    from dprm.cli.arguments import chosen_host

    host = chosen_host(told.host, compiled=told.compile, difficulty=told.difficulty, width=told.width)
    methods = [name.strip() for name in told.methods.split(",") if name.strip()]
    if unknown := [name for name in methods if name not in LEARNERS]:
        parser.error(f"--methods has {unknown[0]!r}: expected some of {', '.join(LEARNERS)}")
    card, outcomes = compared(
        host,
        methods,
        calls=told.calls,
        seeds=told.seeds,
        select=told.select,
        limit=told.limit,
        branched=told.branched,
        rows=told.rows,
        folder=told.work or Path("runs") / f"peers-{host.name}",
        on_part=lambda line: print(line, flush=True),
    )
    card["command"] = " ".join(["python -m benchmarks.peers", *arguments])
    outcomes.save(beside(told.out))
    write_whole(told.out, (json.dumps(card, indent=1, ensure_ascii=False) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
