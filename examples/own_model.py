"""Your own model, from a reward to a verdict: python examples/own_model.py [model calls of the fit]"""

# %% A model: tokens [B, 7] → logits [B, 7, 13]. Three given digits, then four bits of a law that is known exactly.
import sys
from pathlib import Path

import torch

import dprm
from dprm.theory import myopic

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdecimal() else 2_000
MASK, GIVEN = 12, 3
LAW = myopic(beta=2.0)  # Its surest bit is the wrong one to reveal first: from there all others lean to 0.
exact = LAW.denoiser()


def model(tokens):
    bits = tokens[:, GIVEN:]
    logits = torch.full((*tokens.shape, MASK + 1), -50.0)
    logits[:, GIVEN:, :2] = exact(torch.where(bits == MASK, LAW.vocab, bits))[..., :2]
    return logits


# %% Problems: canvases with the mask where to reveal, for three splits; a reward of one finished answer.
digits = torch.cartesian_prod(*[torch.arange(2, 12)] * GIVEN)[torch.randperm(1000, generator=torch.manual_seed(0))]
canvases = torch.cat([digits, torch.full((1000, 4), MASK)], dim=1)


def reward(tokens, facts):
    return float((tokens[GIVEN:] == 1).all())


host = dprm.make_host(
    "bits",
    model,
    mask_id=MASK,
    problems={"fit": canvases[:600], "select": canvases[600:800], "test": canvases[800:]},
    reward=reward,
)

# %% Learn an order, choose it on `select`, look at `test` once.
learned = dprm.learn(host, calls=CALLS, select=100, test=100)
print(*learned.account.lines(), sep="\n")
for name, arm in learned.card.arms.items():
    print(f"{name:28} mean reward {arm.mean:.2f} at {arm.nfe:.0f} model calls")
print("verdict:", learned.card.verdict["verdict"], "because", learned.card.verdict["reason"])

# %% Keep it: the policy is what you deploy, the card is what `dprm report` and `dprm audit` read.
learned.policy.save("bits.dprm")
learned.card.save(Path("bits.json"))
tokens = dprm.decode(model, canvases[:1], dprm.Order.from_policy(learned.policy), mask_id=MASK).tokens
print("one answer:", tokens[0, GIVEN:].tolist())
