"""Is a model behind this door what it is in its own host? The word problems of `puma_words`, both ways.

    python -m dprm.contrib.hf.parity --problems 200 --out results/huggingface.json

The committed weights are saved in LLaDA's format, loaded again as any checkpoint is, and given the committed policy.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from dprm.contrib.hf import small
from dprm.contrib.hf.host import TextHost, host
from dprm.decode.counts import Fixed
from dprm.evaluate.bootstrap import difference_interval
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode
from dprm.host.weights import folder as weights_folder
from dprm.hosts import load
from dprm.hosts.puma_words import words
from dprm.hosts.puma_words.cells import STATES, cell_state
from dprm.order.files import write_whole
from dprm.order.order import Order
from dprm.order.policy import Policy

_STEPS, _WIDTH, _ROWS = "4", 8, 50


def through_the_door(folder: Path, count: int) -> TextHost:
    """The saved model with `count` problems of the test split, and the cells that its policy was fitted with."""
    return host(
        str(small.save_words(folder)),
        small.prompts("test", count, int(_STEPS)),
        small.reward,
        length=words.RESPONSE,
        block=words.RESPONSE,
        name="puma_words",
        trust_remote_code=True,
        count=Fixed(_WIDTH),
        states=STATES,
        state_of=cell_state,
    )


def parity(count: int, resamples: int = 5000) -> dict[str, Any]:
    """Rewards of confidence and of the committed policy in both hosts, and how many answers are the same."""
    policy = Policy.load(weights_folder() / "puma_words.dprm")
    own = load("puma_words").at(_STEPS).with_decoding(count=Fixed(_WIDTH))
    with tempfile.TemporaryDirectory() as folder:
        door = through_the_door(Path(folder), count)
    asked = {"own host": (own, own.problems("test", count)), "checkpoint": (door, door.problems("test", count))}
    orders = {"confidence": None, "policy": Order.from_policy(policy)}
    rewards, answers = {}, {}
    for where, (each, problems) in asked.items():
        for name, order in orders.items():
            answers[where, name], rewards[where, name] = _answered(each, problems, order)
    gains = {}
    for where in asked:
        pair = rewards[where, "policy"], rewards[where, "confidence"]
        gain = difference_interval(*pair, paired=True, resamples=resamples)
        means = {name: float(rewards[where, name].mean()) for name in orders}
        gains[where] = {**means, "gain": gain.estimate, "low": gain.low, "high": gain.high}
    same = {
        name: float((answers["own host", name] == answers["checkpoint", name]).all(1).double().mean())
        for name in orders
    }
    return {"kind": "dprm.huggingface", "problems": count, "width": _WIDTH, "same answers": same, **gains}


def _answered(each: Host, problems: Problems, order: Order | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Answers [N,L] and rewards [N]."""
    parts = [problems[start : start + _ROWS] for start in range(0, len(problems), _ROWS)]
    rollouts = [Decode(order).answer(each, part, 0, each.model()) for part in parts]
    scores = torch.cat([rollout.scores for rollout in rollouts])
    return torch.cat([rollout.tokens for rollout in rollouts]), each.reward(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("results/huggingface.json"))
    given = parser.parse_args()
    command = f"python -m dprm.contrib.hf.parity --problems {given.problems}"
    card = {**parity(given.problems), "command": command}
    write_whole(given.out, (json.dumps(card, indent=2) + "\n").encode())
    print(json.dumps(card, indent=2))


if __name__ == "__main__":
    main()
