"""The training loop: it learns, it stops in time, and it resumes to the same bits."""

import json

import pytest
import torch

import dprm
from dprm.data.draws import Draws
from dprm.train import checkpoint
from dprm.train.denoiser import Denoiser, load_weights, save_weights
from dprm.train.masks import RandomMasks
from dprm.train.objective import masked_cross_entropy, masked_loss
from dprm.train.pool import ProgressivePool
from dprm.train.recipe import Recipe
from dprm.train.training import Training
from dprm.train.transformer import Config, Transformer

MASK = 5


class Repeats:
    """One prompt token, repeated five times as the answer."""

    mask_id = MASK

    def __init__(self, seed=1):
        self.seed = seed

    def batch(self, step, rows):
        clean = Draws(self.seed, step).below(5, rows, 1).expand(rows, 6)
        return clean, (torch.arange(6) > 0).expand(rows, 6)


def law_of(name, rows, seed, data):
    if name == "random":
        return RandomMasks(data, rows, seed)
    return ProgressivePool(data, rows, dprm.Order(signal=name), phases=4, seed=seed)


def training(folder, law="random", tied=False, width=32, data=None, objective=masked_cross_entropy, **changes):
    recipe = Recipe(**{"rows": 16, "steps": 12, "warm": 3, "rate": 3e-3, "log_every": 1, "seed": 2, **changes})
    model = Transformer(Config(6, width=width, depth=2, heads=2, tied=tied), seed=1)
    masks = law_of(law, recipe.rows, recipe.seed, data or Repeats())
    return Training(model, masks, recipe, folder, objective=objective)


def twice(logits, canvases):
    """Another objective."""
    return 2 * masked_cross_entropy(logits, canvases)


@pytest.mark.parametrize(("law", "tied"), [("random", False), ("confidence", False), ("random", True)])
def test_a_killed_training_resumes_to_the_same_bits(tmp_path, law, tied):
    whole = training(tmp_path / "whole", law, tied)
    whole.run()
    first = training(tmp_path / "parts", law, tied)
    first.run(until=5)
    first.save()
    first.run(until=8)  # What is lost in the kill.
    second = training(tmp_path / "parts", law, tied)
    assert second.step == 5
    second.run()
    for kind in ("model", "average"):
        expected = dict(getattr(whole, kind).named_parameters())
        for name, weight in getattr(second, kind).named_parameters():
            assert torch.equal(weight, expected[name]), f"{kind} {name}"
    logs = [(tmp_path / part / "log.jsonl").read_text() for part in ("whole", "parts")]
    assert logs[0] == logs[1]


def test_half_precision_gives_nearly_the_same_losses(tmp_path):
    runs = {half: training(tmp_path / str(half), half=half) for half in (False, True)}
    for run in runs.values():
        run.run()
    logs = {half: [json.loads(line) for line in run.log.read_text().splitlines()] for half, run in runs.items()}
    losses = {half: [line["loss"] for line in lines] for half, lines in logs.items()}
    assert losses[True] != losses[False]
    assert losses[True] == pytest.approx(losses[False], rel=0.02)


def test_a_kill_before_the_first_checkpoint_leaves_no_trace_in_the_log(tmp_path):
    training(tmp_path / "whole").run()
    training(tmp_path / "cut").run(until=4)
    training(tmp_path / "cut").run()
    logs = [(tmp_path / part / "log.jsonl").read_text() for part in ("whole", "cut")]
    assert logs[0] == logs[1]


def test_a_log_is_rewritten_whole_or_not_at_all(tmp_path, monkeypatch):
    run = training(tmp_path)
    run.run(until=4)
    with run.log.open("a") as log:
        log.write('{"step": 5, "lo')  # A kill in the middle of a line.
    told = run.log.read_text()

    def full(*_):
        raise OSError("disk full")

    with monkeypatch.context() as disk:
        disk.setattr("os.replace", full)
        with pytest.raises(OSError, match="disk full"):
            training(tmp_path)
    assert run.log.read_text() == told
    training(tmp_path)
    assert run.log.read_text() == ""


def test_a_finished_training_has_nothing_left_to_do(tmp_path):
    training(tmp_path).run()
    again = training(tmp_path)
    before = [weight.clone() for weight in again.model.parameters()]
    again.run()
    assert again.step == 12
    assert all(torch.equal(*pair) for pair in zip(before, again.model.parameters()))


@pytest.mark.parametrize("law", ["random", "confidence"])
def test_it_learns_to_copy_the_prompt(tmp_path, law):
    run = training(tmp_path, law, rows=64, steps=150, warm=20, average=0.9)
    run.run()
    canvas = torch.full((5, 6), MASK)
    canvas[:, 0] = torch.arange(5)
    tokens = dprm.decode(Denoiser(run.average), canvas, dprm.Order(), mask_id=MASK).tokens
    assert torch.equal(tokens, torch.arange(5).unsqueeze(1).expand(5, 6))


def test_a_time_limit_becomes_a_number_of_steps_after_the_warm_up(tmp_path):
    run = training(tmp_path, steps=None, minutes=0.01, warm=10)
    assert run.steps is None
    run.run()
    assert run.step == run.steps > 10
    last = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert last["step"] == run.steps


def test_the_learning_rate_rises_to_its_peak_and_falls_to_zero():
    recipe = Recipe(steps=100, warm=10, rate=1.0)
    rates = [recipe.rate_at(step, 100) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[100] == pytest.approx(0.0)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_the_loss_is_the_mean_over_the_masked_positions_of_a_row():
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    clean = torch.tensor([[0, 1, 2], [3, 3, 3]])
    masked = torch.tensor([[True, False, True], [False, True, False]])
    nll = -logits.log_softmax(-1).gather(-1, clean.unsqueeze(-1)).squeeze(-1)
    expected = torch.stack([(nll[0, 0] + nll[0, 2]) / 2, nll[1, 1]])
    torch.testing.assert_close(masked_loss(logits, clean, masked), expected)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 3}, "recipe.seed is 2 there and 3 here"),
        ({"rate": 1e-3}, "recipe.rate is 0.003 there and 0.001 here"),
        ({"steps": 9}, "recipe.steps is 2 there and 9 here"),
        ({"steps": None, "minutes": 1.0}, "recipe.steps is 2 there and None here; recipe.minutes is None there"),
        ({"rows": 32}, "recipe.rows is 16 there and 32 here"),
        ({"width": 16}, "model.width is 32 there and 16 here"),
        ({"law": "random"}, "law.name is 'progressive' there and 'random' here"),
        ({"law": "margin"}, r"law.order.signal.* there and .*margin.* here"),
        ({"data": Repeats(seed=7)}, "law.data is '.*' there and '.*' here"),
        (
            {"objective": twice},
            r"objective\.0 is '.*masked_cross_entropy' there and '.*twice' here; objective\.1 is 'code",
        ),
    ],
)
def test_a_checkpoint_of_another_training_is_refused_by_what_differs(tmp_path, changes, named):
    run = training(tmp_path, "confidence", steps=2)
    run.run()
    kept = run.path.read_bytes(), run.log.read_bytes()
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors belongs to another training: .*{named}"):
        training(tmp_path, **{"law": "confidence", "steps": 2, **changes})
    assert (run.path.read_bytes(), run.log.read_bytes()) == kept


def test_how_a_training_is_watched_may_change(tmp_path):
    training(tmp_path, steps=2).run()
    assert training(tmp_path, steps=2, log_every=7, evaluations=1, save_every=1.0).step == 2


def test_a_damaged_checkpoint_is_named(tmp_path):
    run = training(tmp_path)
    run.run(until=2)
    run.save()
    run.path.write_bytes(run.path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is not a readable dprm file"):
        training(tmp_path)


def test_a_failed_save_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "file.safetensors"
    checkpoint.save(path, {"a": torch.ones(2)}, {"step": 1})
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save(path, {"a": torch.zeros(2)}, {"step": 2})
    tensors, facts = checkpoint.load(path)
    assert facts == {"step": 1}
    assert torch.equal(tensors["a"], torch.ones(2))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.safetensors"]


def test_weights_in_half_precision_give_nearly_the_same_logits(tmp_path):
    for tied in (False, True):
        model = Transformer(Config(6, width=32, depth=2, heads=2, tied=tied), seed=1)
        save_weights(tmp_path / "w.safetensors", model, {"score": 0.5})
        loaded, facts = load_weights(tmp_path / "w.safetensors")
        assert facts["score"] == 0.5
        canvas = torch.full((2, 6), MASK)
        torch.testing.assert_close(loaded(canvas), model(canvas), rtol=0, atol=2e-3)


def test_decoding_does_not_depend_on_how_rows_are_batched():
    model = Transformer(Config(6, width=32, depth=2, heads=2), seed=1)
    canvas = torch.full((7, 6), MASK)
    canvas[:, 0] = torch.arange(7) % 5
    order = dprm.Order(signal="random")
    whole = dprm.decode(Denoiser(model), canvas, order, mask_id=MASK, seed=torch.arange(7)).tokens
    part = dprm.decode(Denoiser(model), canvas[3:5], order, mask_id=MASK, seed=torch.arange(3, 5)).tokens
    assert torch.equal(part, whole[3:5])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"steps": None}, "exactly one"),
        ({"minutes": 1.0}, "exactly one"),
        ({"rows": 0}, "rows is 0"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": -0.1}, r"rate is -0\.1"),
        ({"steps": None, "minutes": 0.0}, r"minutes is 0\.0"),
        ({"steps": None, "minutes": float("nan")}, "minutes is nan"),
        ({"steps": 0}, "steps is 0"),
        ({"evaluations": 0}, "evaluations is 0"),
    ],
)
def test_impossible_recipes_are_named(tmp_path, changes, named):
    with pytest.raises(ValueError, match=named):
        training(tmp_path, **changes)
