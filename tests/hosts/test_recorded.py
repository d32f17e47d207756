"""Every committed policy and the orders of its host decode as they were recorded: tokens and step maps, bit for bit."""

from pathlib import Path

import pytest
import torch

import dprm
from dprm.decode import Fixed
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.hosts import load
from dprm.order.files import read_tensors

ROOT = Path(__file__).parents[2]
RECORDED, _ = read_tensors(ROOT / "tests" / "data" / "decodings.safetensors", "dprm.decodings")
# host | difficulty | positions a step | policy or signal
NAMES = sorted({name.rpartition("|")[0] for name in RECORDED if name.endswith("|tokens")})
SIGNALS = ("confidence", "random", "entropy")


def way_of(name: str) -> Decode:
    if " at temperature " in name:
        rule, _, temperature = name.partition(" at temperature ")
        policy = dprm.Policy.load(ROOT / "weights" / "puma_words.dprm")
        return Decode(dprm.Order.from_policy(policy, rule=rule), float(temperature))
    if name in SIGNALS:
        return Decode(dprm.Order(signal=name))
    return Decode(dprm.Order.from_policy(dprm.Policy.load(ROOT / "weights" / f"{name}.dprm"), rule="top_m"))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("montecarlo")])
def test_decodings_are_those_that_were_recorded(name):
    host_name, difficulty, width, arm = name.split("|")
    host = load(host_name)
    host = (host.at(difficulty) if difficulty else host).with_decoding(count=Fixed(int(width)))
    tokens, steps = RECORDED[f"{name}|tokens"].long(), RECORDED[f"{name}|steps"].int()
    problems = host.problems("test", len(tokens), 4)
    found = decoded(host, problems, {arm: way_of(arm)}, seed=4, rows=8)[arm]
    assert torch.equal(found.tokens, tokens)
    assert torch.equal(found.step_map, steps)
    assert torch.equal(host.reward(found.scores).float(), RECORDED[f"{name}|reward"])
