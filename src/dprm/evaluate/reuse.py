"""Does a table of earlier prompts say anything about later ones? The paper's test of reuse, for any host.

From decodings of some problems alternatives are forced and finished, as `fit.branching` does. A table of a grid of
cells, made of four fifths of the problems, predicts what each alternative of the others gains:

    predicted = R̂(cell of the alternative) − R̂(cell of the native choice)

beside the gain there was, and beside the zero predictor, which says that nothing is ever gained. Problems are never
divided. The grid with the smallest error is written as a policy, whatever the error is, so that new problems can be
decoded with it:

    python -m dprm.evaluate.reuse omni 64 --out results/omni-reuse.json
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.fit.branched import credited
from dprm.fit.branches import Branches
from dprm.fit.branching import Branching
from dprm.host.host import Host
from dprm.order.cells import Cells
from dprm.order.files import write_whole
from dprm.order.order import Order
from dprm.order.values import estimate

KIND = "reuse"
# Phases and bins, as (P, B).
GRIDS = ((1, 4), (1, 16), (4, 4), (4, 16), (8, 4), (8, 8), (8, 16))
FOLDS = 5


def empty(host: Host, cells: Cells) -> Order:
    """An order of these cells that knows nothing yet; its rewards are differences."""
    width = host.reward_range[1] - host.reward_range[0]
    return Order(
        *cells.shape,
        ready=8,
        signal=host.decoding.signal,
        baseline="none",
        reward_range=(-width, width),
        shrunken=True,
    )


def predicted(host: Host, branches: Branches, cells: Cells, folds: int = FOLDS) -> tuple[Tensor, Tensor]:
    """[n] what tables of other problems predict for every alternative that was tried, and [n] what it gained."""
    said, gained = [], []
    order = empty(host, cells)
    for learned, others in branches.folds(folds):
        if not len(learned) or not len(others):
            continue
        value = estimate(credited(host, learned, order, cells), "none", shrunken=True).value
        alternative, native = others.cells(cells)
        said.append((value[alternative] - value[native])[others.tried])
        gained.append(others.gain(host)[others.tried])
    return torch.cat(said).double(), torch.cat(gained).double()


def agreement(said: Tensor, gained: Tensor) -> dict[str, float | None]:
    """Root mean squared error of predictions and of 0, and correlations; None where nothing varies."""
    return {
        "rmse": float((said - gained).square().mean().sqrt()),
        "rmse of zero": float(gained.square().mean().sqrt()),
        "pearson": correlation(said, gained),
        "spearman": correlation(ranks(said), ranks(gained)),
    }


def correlation(left: Tensor, right: Tensor) -> float | None:
    """Pearson's, of two vectors [n]."""
    left, right = left - left.mean(), right - right.mean()
    scale = float(left.norm() * right.norm())
    return float(left @ right) / scale if scale > 0 and math.isfinite(scale) else None


def ranks(values: Tensor) -> Tensor:
    """[n] float64 the rank of every value; equal ones share theirs."""
    _, member, count = torch.unique(values, return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    middle: Tensor = last - (count - 1) / 2
    return middle[member]


def reuse(host: Host, branches: Branches, grids: Sequence[tuple[int, int]] = GRIDS) -> tuple[Order, dict[str, Any]]:
    """The table of the grid with the smallest error, and what all grids say of problems they were not made from."""
    facts = {}
    for phases, bins in grids:
        facts[f"{phases} × {bins}"] = agreement(*predicted(host, branches, Cells(phases, bins)))
    taken = min(facts, key=lambda name: facts[name]["rmse"] or 0.0)
    phases, bins = map(int, taken.split(" × "))
    order = empty(host, Cells(phases, bins))
    order.merge(credited(host, branches, order, order.cells))
    gain = branches.gain(host)[branches.tried]
    changed = {"comparisons": branches.count, "that end otherwise": float((gain != 0).double().mean())}
    return order, {"folds": FOLDS, **changed, "grids": facts, "taken": taken}


def main() -> None:
    """Collect, compare grids, write the account and beside it the policy."""
    from dprm.hosts import load

    parser = argparse.ArgumentParser(prog="python -m dprm.evaluate.reuse")
    parser.add_argument("host")
    parser.add_argument("problems", type=int, help="of the fit split")
    parser.add_argument("--states", type=int, default=4, help="of each problem")
    parser.add_argument("--alternatives", type=int, default=2, help="of each state")
    parser.add_argument("--out", type=Path, required=True, help="the account; the policy is written to runs/")
    parser.add_argument("--compile", action="store_true")
    asked = parser.parse_args()
    host = load(asked.host, compiled=asked.compile)
    problems = host.problems("fit", asked.problems)
    branching = Branching(asked.states, asked.alternatives)
    branches, cost = branching.collect(host, problems, host.decoding.order(), host.model(), rows=128)
    order, facts = reuse(host, branches)
    policy = order.policy(host=host.name, estimator="reuse", preference=str(host.preference))
    policy.save(Path("runs") / f"{host.name}-reuse.dprm")
    command = f"python -m dprm.evaluate.reuse {asked.host} {asked.problems} --states {asked.states}"
    head = {"kind": KIND, "host": host.name, "weights": host.weights, "policy": policy.digest}
    head |= {"command": f"{command} --alternatives {asked.alternatives} --out {asked.out}"}
    whole = {**head, "problems": len(problems), "digest": problems.digest, "calls": cost.calls, **facts}
    write_whole(asked.out, (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()
