"""Learning from traffic: python examples/traffic.py [questions asked]

A server that reveals two positions a step by confidence. While it explores, its choices are recorded; later each
answer is judged; a table is learned from both, without one more model call, and served.
"""

import json
import sys
from pathlib import Path

import torch

from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.fit.traffic import learn
from dprm.theory import keyed

QUESTIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
ANSWERS = 8
LAW = keyed(beta=2.0)  # Six bits; only an order that begins with the third earns anything.
MASK = LAW.vocab
model = LAW.denoiser()


def answer(selector: Selector, names: list[str]) -> torch.Tensor:
    """What a server does for a batch of requests: its own choice, which the selector may replace."""
    tokens = torch.full((len(names), LAW.length), MASK)
    requests = Requests.begin(names, tokens == MASK)
    while (masked := tokens == MASK).any():
        logits = model(tokens)
        confidence, best = logits.softmax(-1).max(-1)
        own = torch.zeros_like(masked).scatter(1, confidence.masked_fill(~masked, -1.0).topk(1).indices, True)
        chosen = selector.select(own, confidence, masked, requests)
        tokens = torch.where(chosen, best, tokens)
    return tokens


def main(folder: Path) -> None:
    # Serve, and write down what is chosen; explore, or nothing is ever learned about other orders.
    recording = Selector(None, mask_id=MASK, explore=True, traces=folder / "traces")
    with (folder / "rewards.jsonl").open("w") as rewards:
        for question in range(QUESTIONS):
            names = [f"{question}-{number}" for number in range(ANSWERS)]
            for name, reward in zip(names, LAW.reward_of(answer(recording, names)).flatten().tolist()):
                rewards.write(json.dumps({"request": name, "reward": reward, "prompt": str(question)}) + "\n")
    recording.traces.flush()

    # Learn: no model call. The account says what was left out, and whether the values explain rewards they never saw.
    policy, account = learn(folder / "traces", folder / "rewards.jsonl")
    print(*account.lines(), sep="\n")
    policy.save(folder / "traffic.dprm")

    # Serve the new policy beside the old order.
    for name, served in (("own order", None), ("learned", policy)):
        tokens = answer(Selector(served, mask_id=MASK), [f"again-{number}" for number in range(100)])
        print(f"{name:10} mean reward {float(LAW.reward_of(tokens).double().mean()):.2f}")


if __name__ == "__main__":
    where = Path("runs/traffic")
    where.mkdir(parents=True, exist_ok=True)
    main(where)
