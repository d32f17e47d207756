"""What a kept answer belongs to: whatever could change it, wherever a stranger's reward keeps it."""

import functools
import sys

import pytest
import torch

import dprm
from dprm.decode import Fixed, HoldBack, Threshold
from dprm.decode.windows import Blocks
from dprm.fit import Run
from dprm.host.decoded import decoded
from dprm.host.identity import code_word, host_word, model_word
from dprm.host.rollout import Decode
from dprm.host.variants import with_reward
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


def test_a_reward_that_calls_another_file_is_another_one_when_that_file_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kit").mkdir()
    (tmp_path / "mine.py").write_text(
        "from scoring import score\n\ndef reward(tokens, facts):\n    return score(tokens)\n"
    )
    (tmp_path / "scoring.py").write_text(
        "def score(tokens):\n    from kit.first import wanted\n    return wanted(tokens)\n"
    )
    means, words = [], []
    for token in (0, 1, 0):
        (tmp_path / "kit" / "first.py").write_text(f"def wanted(tokens):\n    return float(tokens[0] == {token})\n")
        for name in ("scoring", "kit", "kit.first", "dprm_user_mine"):
            sys.modules.pop(name, None)
        monkeypatch.setattr("dprm.host.finding._FILES", {})
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.syspath_prepend(str(tmp_path))
        mine = with_reward(ToyHost(), "mine.py:reward")
        words.append(code_word(mine))
        answers = decoded(mine, mine.problems("test", 6), {"host": Decode()}, folder=tmp_path / "runs")
        means.append(float(answers["host"].scores.mean()))
    assert words[0] == words[2] != words[1]
    assert means == [1.0, 0.0, 1.0]
    assert code_word(ToyHost()) == code_word(ToyHost())


class Marked:
    """A model that is no module; of the marked problem it is sure of another beginning."""

    def __init__(self, mark, table=None, scale=1.0):
        self._mark, self._table, self.scale = mark, table, scale

    def __call__(self, tokens):
        logits = self.scale * CHAIN.denoiser()(tokens)
        if self._table is not None:
            return logits + 0.0 * self._table.sum()
        return torch.where((tokens == self._mark).any(1)[:, None, None], logits.flip(-1), logits)


def test_a_model_that_is_no_module_is_known_by_what_it_holds_and_by_what_it_says_of_several_problems():
    canvases = torch.full((4, 5), MASK)
    canvases[:, 4] = torch.tensor([0, 1, 0, 1])

    class Prompted(ToyHost):
        def __init__(self, said):
            self.said = said

        def model(self):
            return lambda tokens: self.said(tokens)

        def problems(self, split, count, seed=0):
            rows = torch.arange(4)[:count]
            return dprm.Problems(canvases[rows, :], rows, rows.tolist())

    class FirstFour(Marked):
        def __call__(self, tokens):
            logits = super().__call__(tokens[:, :4])
            swap = (tokens[:, 4] == self._mark)[:, None, None]
            logits = torch.where(swap, logits.flip(-1), logits)
            return torch.cat([logits, logits[:, :1]], 1)

    # The first problem is answered alike by both; only the second tells them apart.
    assert model_word(Prompted(FirstFour(1))) != model_word(Prompted(FirstFour(9)))
    assert model_word(Prompted(FirstFour(1))) == model_word(Prompted(FirstFour(1)))
    # What it says tells apart what holds no tensor, and what it holds what it says alike.
    assert model_word(host(starts_with, Marked(9))) != model_word(host(starts_with, Marked(9, scale=2.0)))
    tables = [torch.zeros(3), torch.ones(3), torch.zeros(3)]
    words = [host_word(host(starts_with, Marked(9, table))) for table in tables]
    assert words[0] == words[2] != words[1]
    closed = [model_word(host(starts_with, around(Marked(9, table)))) for table in tables]
    assert closed[0] == closed[2] != closed[1]


def around(model):
    return lambda tokens: model(tokens)


WANTED = [0]


class Indirect:
    """A reward that reads what neither its code nor its attributes show."""

    __slots__ = ()

    def __call__(self, tokens, facts):
        return float(tokens[0] == WANTED[0])


def test_a_reward_is_asked_what_it_says_unless_it_says_something_else_every_time(monkeypatch):
    said = [host_word(host(Indirect()))]
    monkeypatch.setitem(globals(), "WANTED", [1])
    said.append(host_word(host(Indirect())))
    assert said[0] != said[1]
    lots = iter(torch.rand(1000).tolist())
    assert host_word(host(lambda tokens, facts: next(lots))) == host_word(host(lambda tokens, facts: next(lots)))


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
