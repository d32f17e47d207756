"""γ, chosen on captions of the select split: the smallest that has 99 % of the gain of the reward alone.

A larger γ than that buys nothing, and leaves less to what the model itself prefers. The five paths of every caption are
decoded once; the chosen γ and what every γ earned are written to `gamma.json` beside this file by

    python -m dprm.hosts.omni.gamma 128
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.host.host import Host, Problems
from dprm.hosts.omni.intervention import GAMMA, KEPT, Paths, chosen, paths
from dprm.order.files import write_whole

COMMAND = "python -m dprm.hosts.omni.gamma"
GAMMAS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 8.0)
SHARE, TOGETHER = 0.99, 64


def decoded(host: Host, problems: Problems, seed: int = 0, folder: Path | None = KEPT) -> Paths:
    """The five paths of problems, some at a time."""
    model = host.model()
    parts = []
    for start in range(0, len(problems), TOGETHER):
        parts.append(paths(host, problems[start : start + TOGETHER], seed, model, folder))
        print(f"{start + len(parts[-1])} of {len(problems)}", file=sys.stderr, flush=True)
    return Paths.joined(parts)


def smallest(native: Tensor, reward: Tensor) -> tuple[float, dict[str, dict[str, float]]]:
    """The chosen γ of c_i and rewards [N,P], and what every γ earns: mean reward, and the share of other paths."""
    row = torch.arange(len(reward))
    facts, most = {}, float(reward.max(1).values.mean() - reward[:, 0].mean())
    taken = GAMMAS[-1]
    for gamma in reversed(GAMMAS):
        index = chosen(native, reward, gamma)
        mean = float(reward[row, index].mean())
        facts[f"{gamma:g}"] = {"reward": round(mean, 5), "other": round(float((index != 0).float().mean()), 4)}
        if mean - float(reward[:, 0].mean()) >= SHARE * most:
            taken = gamma
    return taken, facts


def main() -> None:
    """Choose and write."""
    from dprm.hosts import load

    host = load("omni", compiled="--compile" in sys.argv)
    count = int(sys.argv[1])
    problems = host.problems("select", count)
    five = decoded(host, problems)
    scores = five.scores(host, problems)
    reward = host.reward(scores.flatten(0, 1)).view(len(five), -1)
    gamma, earned = smallest(five.native, reward)
    facts: dict[str, Any] = {"command": f"{COMMAND} {count}", "weights": host.weights, "problems": problems.digest}
    facts |= {"count": len(problems), "gamma": gamma, "earned": earned}
    facts["by path"] = [round(value, 5) for value in reward.mean(0).tolist()]
    write_whole(GAMMA, (json.dumps(facts, indent=2) + "\n").encode())
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
