"""What a kept answer belongs to: whatever could change it, wherever a stranger's reward keeps it."""

import functools

import pytest
import torch

import dprm
from dprm.decode import Fixed, HoldBack, Threshold
from dprm.decode.windows import Blocks
from dprm.fit import Run
from dprm.host.decoded import decoded
from dprm.host.identity import host_word
from dprm.host.rollout import Decode
from tests.toy_host import CHAIN, ToyHost

MASK = 2
PROBLEMS = {split: [([MASK] * 4, f"{split} {number}") for number in range(6)] for split in ("fit", "select", "test")}


class Scorer:
    """A reward that is an object."""

    def __init__(self, wanted):
        self._wanted = wanted

    def __call__(self, tokens, facts):
        return float(tokens[0] == self._wanted)

    def method(self, tokens, facts):
        return self(tokens, facts)


def starts_with(tokens, facts, wanted=0):
    return float(tokens[0] == wanted)


def closed_over(wanted):
    told = {"wanted": [wanted]}
    return lambda tokens, facts: float(tokens[0] == told["wanted"][0])


def typed_in(wanted):
    """As in a notebook: there is no file, and what it reads stands beside it."""
    names = {"WANTED": wanted}
    exec("def same(a):\n    return a == WANTED\n\ndef reward(tokens, facts):\n    return float(same(tokens[0]))", names)
    return names["reward"]


REWARDS = {
    "an object": Scorer,
    "its method": lambda wanted: Scorer(wanted).method,
    "a partial": lambda wanted: functools.partial(starts_with, wanted=wanted),
    "a closure": closed_over,
    "typed in": typed_in,
}


def host(reward, model=None):
    return dprm.make_host("mine", model or CHAIN.denoiser(), MASK, PROBLEMS, reward)


@pytest.mark.parametrize("make", REWARDS.values(), ids=REWARDS)
def test_another_reward_is_another_host(make, tmp_path):
    words = [host_word(host(make(wanted))) for wanted in (0, 1, 0)]
    assert words[0] == words[2] != words[1]
    means = []
    for wanted in (0, 1):
        mine = host(make(wanted))
        answers = decoded(mine, mine.problems("test", 6), {"host": Decode()}, folder=tmp_path)
        means.append(float(answers["host"].scores.mean()))
    assert means == [1.0, 0.0]  # Confidence ends in 0000.


@pytest.mark.parametrize(
    "decoding",
    [{"temperature": 0.5}, {"guard": HoldBack((0,))}, {"window": Blocks(2)}, {"count": Threshold(0.5)}],
    ids=lambda decoding: next(iter(decoding)),
)
def test_another_decoding_is_another_host_and_rows_and_device_are_not(decoding):
    plain = host(starts_with)
    assert host_word(plain.with_decoding(**decoding)) != host_word(plain)
    assert host_word(plain.with_preference({"reward": 1.0})) == host_word(plain)


class Sharper(ToyHost):
    """The toy with another model."""

    def model(self):
        plain = super().model()
        return lambda tokens: 2.0 * plain(tokens)


class Strict(ToyHost):
    """The toy with another reward."""

    def judge(self, problems, tokens):
        return 0.5 * super().judge(problems, tokens)


@pytest.mark.parametrize("other", [Sharper(), Strict(), ToyHost().with_decoding(count=Fixed(2))])
def test_a_fit_that_goes_on_notices_another_model_reward_or_decoding(tmp_path, other):
    random = dprm.Order(signal="random")
    first = Run(ToyHost(), 1000, tmp_path)
    first.rewards(random, ToyHost().problems("fit", 40))
    again, alone = Run(other, 1000, tmp_path), Run(other, 1000)
    problems = other.problems("fit", 40)
    assert torch.equal(again.rewards(random, problems), alone.rewards(random, problems))
    assert again.cost == alone.cost
    assert len(list(tmp_path.glob("trial-*.piece"))) == 2


def test_a_model_whose_weights_differ_is_told_apart():
    torch.manual_seed(0)
    models = [torch.nn.Sequential(torch.nn.Embedding(3, 8), torch.nn.Linear(8, 2)) for _ in range(2)]
    words = [host_word(host(starts_with, model)) for model in (*models, models[0])]
    assert words[0] == words[2] != words[1]
