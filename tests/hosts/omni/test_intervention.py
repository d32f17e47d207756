"""The intervention: one canvas for five paths, one decision that differs, the score of the paper, the price."""

import math

import pytest
import torch

from dprm.decode.loop import advance, begin
from dprm.host.rollout import Decode
from dprm.hosts.omni import canvas, intervention
from dprm.hosts.omni.gamma import smallest
from dprm.hosts.omni.host import Pictures
from dprm.hosts.omni.intervention import PATHS, QUANTILES, STEP, BestOfSeeds, Intervention, candidates, chosen
from dprm.hosts.omni.penalties import Painter, Penalties
from dprm.hosts.omni.records import records, written
from dprm.order.noise import mix, mix_rows
from dprm.train.transformer import Config, Transformer


class Judged(Pictures):
    """The host, judged by what needs no trained judge: how much of the picture is red, and three more columns."""

    def judge(self, problems, tokens):
        red = (canvas.picture(tokens) == 1).float().mean((1, 2))
        return torch.stack([red, red, red, (red > 0.2).float()], 1)


@pytest.fixture(scope="module")
def host():
    model = Transformer(Config(canvas.VOCABULARY, width=32, depth=1, heads=1, sides=canvas.SIDES))
    with torch.no_grad():
        model.head.weight *= 12
        model.embedding.weight *= 12
    return Judged(Painter(model), weights="a model of this test")


@pytest.fixture(scope="module")
def problems(host):
    return host.problems("test", 2)


@pytest.fixture(scope="module")
def five(host, problems):
    return intervention.paths(host, problems, 0, host.model())


def test_forks_share_their_canvas_bit_for_bit_and_differ_in_one_decision(host, problems, five):
    start = begin(problems.canvas, host.decoding, mix_rows(problems.key, mix(0)))
    native = advance(host.model(), start, host.decoding.order(), host.decoding)
    before = torch.where(native.step_map <= STEP, native.tokens, canvas.MASK)
    assert torch.equal(five.canvas, before)
    for path in range(PATHS):
        early = (five.step_map[:, path] <= STEP) & (problems.canvas == canvas.MASK)
        assert torch.equal(torch.where(early, five.tokens[:, path], 0), torch.where(early, before, 0))
        assert int(early.sum()) == 2 * STEP
        # The forced position is revealed in step 97, alone, with the token it would have had.
        step = five.step_map[:, path].gather(1, five.position[:, path : path + 1])
        assert step.flatten().tolist() == [STEP + 1] * 2
        assert torch.equal(five.tokens[:, path].gather(1, five.position[:, path : path + 1])[:, 0], five.token[:, path])
    assert torch.equal(five.tokens[:, 0], native.tokens)
    assert torch.equal(five.step_map[:, 0], native.step_map)
    assert five.calls.tolist() == [96 + 1 + 5 * 163] * 2


def test_candidates_are_the_best_and_quantiles_of_rank_ascending():
    score = torch.full((1, 300), -torch.inf)
    score[0, 100:201] = torch.linspace(-1, 0, 101)
    assert candidates(score).tolist() == [[200, 170, 185, 190, 195]]
    assert len(QUANTILES) + 1 == PATHS
    # The first of equals is the native choice, as in the decoder.
    assert candidates(torch.zeros(1, 10))[0, 0] == 0


def test_the_score_of_the_paper():
    native, reward = torch.tensor([[-0.1, -0.5, -0.2]]), torch.tensor([[0.20, 0.23, 0.21]])
    assert chosen(native, reward, 0.0).tolist() == [0]
    # −.1 + 0 against −.5 + γ·1 and −.2 + γ/3.
    assert chosen(native, reward, 0.35).tolist() == [2]
    assert chosen(native, reward, 0.7).tolist() == [1]
    assert chosen(native, reward, math.inf).tolist() == [1]
    gamma, earned = smallest(native, reward)
    assert gamma == 1.0
    assert earned["0"] == {"reward": 0.2, "other": 0.0}


def test_arms_choose_among_the_same_paths_at_the_same_price(host, problems, five):
    answers = {
        by: Intervention(by, gamma=8.0).answer(host, problems, 0, host.model()) for by in ("score", "reward", "uniform")
    }
    native = Decode().answer(host, problems, 0, host.model())
    rewards = five.scores(host, problems)[:, :, 0]
    assert torch.equal(answers["reward"].scores[:, 0], rewards.max(1).values)
    assert bool((answers["score"].scores[:, 0] >= native.scores[:, 0]).all())
    for answer in answers.values():
        assert answer.nfe.tolist() == [912] * 2
        assert bool((answer.tokens.unsqueeze(1) == five.tokens).all(2).any(1).all())
    with pytest.raises(ValueError, match="by is 'best'"):
        Intervention("best")


def test_best_of_seeds_continues_the_same_canvas(host, problems, five):
    answer = BestOfSeeds().answer(host, problems, 0, host.model())
    kept = five.canvas != canvas.MASK
    assert torch.equal(answer.tokens[kept], five.canvas[kept])
    assert answer.nfe.tolist() == [96 + 5 * 164] * 2
    assert bool((answer.scores[:, 0] >= five.scores(host, problems)[:, 0, 0]).all())


def test_paths_are_kept_for_other_commands(host, problems, five, tmp_path, monkeypatch):
    intervention.paths(host, problems, 0, host.model(), tmp_path)
    intervention._REMEMBERED.clear()
    monkeypatch.setattr(intervention, "_continued", None)
    again = intervention.paths(host, problems, 0, host.model(), tmp_path)
    for name, column in five.tensors().items():
        torch.testing.assert_close(getattr(again, name), column, rtol=0, atol=0, equal_nan=True)


def test_records_say_what_was_decided(host, problems, five):
    entries = records(host, problems, five, 8.0)
    assert [entry["caption"] for entry in entries] == [str(caption) for caption in problems.facts]
    for row, entry in enumerate(entries):
        assert len(entry["places"]) == len(entry["native"]) == len(entry["similarity"]) == PATHS
        if entry["chosen"] and "pictures" in entry:
            assert entry["pictures"][1] == written(five.tokens[row, 0])
            assert len(entry["pictures"][0]) == 256


# ---- penalties -------------------------------------------------------------------------------------------------------


def test_penalties_are_those_of_upstream():
    logits = torch.full((1, canvas.LENGTH, canvas.SHOWN), -4.0)
    logits[..., 0], logits[..., 1], logits[..., 2] = 3.0, 2.9, -1.0
    tokens = torch.full((1, canvas.LENGTH), canvas.MASK)
    penalised = Penalties()(logits, tokens)
    assert penalised[0, 0, :2].tolist() == pytest.approx([3.0, 2.9])
    # Outside of the nucleus of .9.
    assert bool(torch.isinf(penalised[..., 2:]).all())
    # The last masked position is divided by 2, the first hundred by 1, those between linearly.
    assert penalised[0, -1, :2].tolist() == pytest.approx([1.5, 1.45])
    assert penalised[0, 99, 0] == 3.0 > penalised[0, 101, 0] > penalised[0, 200, 0]
    tokens[0, 5] = 0
    repeated = Penalties(top_p=1.0)(logits, tokens)
    assert repeated[0, 0, :3].tolist() == pytest.approx([3.0 / 1.2, 2.9, -1.0])
    tokens[0, 6] = 2
    assert Penalties(top_p=1.0)(logits, tokens)[0, 0, 2].item() == pytest.approx(-1.2)


def test_only_codes_and_format_tokens_are_revealed(five):
    assert int(five.tokens[:, :, 16:].max()) < canvas.SHOWN
