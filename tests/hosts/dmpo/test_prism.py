"""The Prism host: its data, its verdicts and its arms, around a tiny model."""

from dataclasses import replace

import pytest
import torch

from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.host.metrics import HELD_OUT
from dprm.hosts.dmpo import canvas, prism
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.dmpo.problems import CountdownData
from dprm.train.denoiser import Denoiser, save_weights
from dprm.train.masks import RandomMasks
from dprm.train.transformer import Config, Transformer

CPU = torch.device("cpu")
CONFIG = Config(canvas.VOCABULARY, width=32, depth=1, heads=1, sides=canvas.SIDES)


@pytest.fixture(scope="module")
def host():
    return prism.prism(Transformer(replace(CONFIG, sides=prism._SIDES)))


def test_samples_are_whole_answers_with_their_label():
    plain = Countdown(Denoiser(Transformer(CONFIG)), sizes=(3, 4))
    problems = plain.problems("train", 6)
    answers, right = prism.sampled(plain, problems)
    assert len(answers) == 6 * (len(prism.FILLS) + 1)
    assert not bool((answers == canvas.MASK).any())
    assert torch.equal(answers[:6, : canvas.PROMPT].long(), problems.canvas[:, : canvas.PROMPT])
    assert right.dtype == torch.bool
    assert not bool(right.any()), "an untrained model is never right"
    # The last fill is not yet the answer, the whole answer is.
    assert not torch.equal(answers[18:24], answers[24:])


def test_half_of_a_batch_asks_for_the_verdict_alone():
    stock = CountdownData({2: 64}, 0, CPU)
    answers = torch.randint(0, 10, (5, canvas.LENGTH), dtype=torch.uint8)
    right = torch.tensor([True, False, False, True, False])
    data = prism.VerdictData(stock, answers, right, 0, CPU)
    clean, answer = data.batch(3, 8)
    assert clean.shape == (8, canvas.LENGTH + 1)
    assert answer.sum(1).tolist()[4:] == [1] * 4
    assert bool(answer[4:, -1].all())
    assert not bool(answer[:4, -1].any())
    labels = {tuple(row.tolist()): int(prism.YES if ok else prism.NO) for row, ok in zip(answers, right)}
    for row in clean[4:]:
        assert int(row[-1]) == labels[tuple(row[:-1].tolist())]
    masked = RandomMasks(data, 8).canvases(0).masked
    assert bool((masked[4:] == answer[4:]).all()), "the only position that is asked for is always masked"


def test_the_area_is_that_of_pairs():
    scores, right = torch.tensor([0.1, 0.4, 0.4, 0.8, 0.9]), torch.tensor([False, True, False, False, True])
    pairs = [(s > w) + 0.5 * (s == w) for s in scores[right] for w in scores[~right]]
    assert prism.area(scores, right) == pytest.approx(float(sum(pairs)) / len(pairs))
    assert prism.area(scores, scores > 0.5) == 1.0


@pytest.mark.slow
def test_the_arms_of_the_paper_are_compared(host):
    arms = arms_of(host, ("random",))
    assert list(arms)[:2] == ["confidence", "random"]
    assert {"no search", "dprm, fresh table", "dprm, shortlist only", "confidence, 24 wide"} <= arms.keys()
    assert {"dprm, fresh table, early gate", "confidence, one a step", "dprm, fresh table, one a step"} <= arms.keys()
    assert [metric.name for metric in host.metrics if metric.role == HELD_OUT][1:] == [
        "rank 1",
        "rank 2",
        "rank 3",
        "rank 4",
        "any of 4",
    ]
    few = {name: arms[name] for name in ("confidence", "no search", "dprm, fresh table, one a step")}
    card = compare(host.at("3"), host.at("3").problems("test", 2), few, split="test").card
    # A sum of 56 positions, one a step.
    assert card.arms["dprm, fresh table, one a step"].calls["denoiser"] > 4 * canvas.RESPONSE
    assert 0 < card.arms["confidence"].calls["verifier"] <= 16 + 9 + 4


def test_a_training_begins_with_the_countdown_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(prism.weights, "checked", lambda name, command: tmp_path / name)
    base = Transformer(CONFIG, seed=5)
    save_weights(tmp_path / "dmpo.safetensors", base, {})
    model = replace(prism.TASK, config=replace(CONFIG, sides=prism._SIDES)).first(None, None, 0)
    assert torch.equal(model.embedding.weight, base.embedding.weight.half().float())
    longer = torch.full((1, canvas.LENGTH + 1), canvas.MASK)
    assert model(longer).shape[1] == canvas.LENGTH + 1
