"""Training a host in every law, going on after a kill, and what is refused before any work."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.hosts import task_of
from dprm.hosts.puma.board import SIX
from dprm.hosts.puma.host import Sudoku
from dprm.hosts.puma.puzzles import generate
from dprm.hosts.puma.symmetry import SudokuData, of_split
from dprm.order import Gate
from dprm.train import checkpoint
from dprm.train.denoiser import Denoiser
from dprm.train.learner import learner
from dprm.train.learning import LearningPool
from dprm.train.recipe import Recipe
from dprm.train.task import Task
from dprm.train.train import LAWS, train
from dprm.train.training import Training
from dprm.train.transformer import Config, Transformer

STEPS = 6
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def small():
    """The Sudoku task on 6×6 with few puzzles."""
    puzzles = generate(SIX, 120)
    return Task(
        config=Config(SIX.vocabulary, width=32, depth=1, heads=1, sides=SIX.sides, rotary=False),
        data=lambda seed, device, work: SudokuData(of_split(puzzles, SIX, "train"), SIX, seed, device),
        wrap=lambda model, device: Sudoku(Denoiser(model), SIX, device),
        phases=4,
    )


def run(task, law, folder, **changes):
    recipe = Recipe(rows=8, steps=STEPS, evaluations=1, save_every=0.0)
    settings = {"out": folder / "w.safetensors", "work": folder, "problems": 4, "every": 2, **changes}
    return train(task, law, recipe, **settings)


def weights(folder):
    return checkpoint.load(folder / "w.safetensors")


@pytest.mark.parametrize("law", LAWS)
def test_every_law_trains_and_says_how_well_it_decodes(small, law, tmp_path):
    scores = run(small, law, tmp_path)
    assert set(scores) == {f"solved_{signal}_{width}" for signal in ("confidence", "random") for width in (1, 2, 3)}
    _, facts = weights(tmp_path)
    assert facts["law"] == law
    assert facts["steps"] == STEPS
    log = [json.loads(line) for line in (tmp_path / f"puma-{law}" / "log.jsonl").read_text().splitlines()]
    assert sum("taught" in entry for entry in log) == (3 if law == "dprm" else 0)


@pytest.mark.parametrize("law", LAWS)
def test_a_killed_training_ends_in_the_same_weights_policy_and_log(small, law, tmp_path, monkeypatch):
    run(small, law, tmp_path / "whole")
    update, calls = Training._update, []

    def killed(self):
        calls.append(0)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return update(self)

    with monkeypatch.context() as kill:
        kill.setattr(Training, "_update", killed)
        with pytest.raises(KeyboardInterrupt):
            run(small, law, tmp_path / "cut")
    run(small, law, tmp_path / "cut")
    for name in ("w.safetensors", f"puma-{law}/log.jsonl", *(["w.dprm"] if law == "dprm" else [])):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name


def test_the_learning_law_writes_a_policy_that_is_ready_to_decode_with(small, tmp_path):
    run(small, "dprm", tmp_path)
    policy = dprm.Policy.load(tmp_path / "w.dprm")
    assert policy.gate == Gate(0, 16, 16)
    order = dprm.Order.from_policy(policy, rule="top_m")
    assert order.gate.ramp(order.step) == 1.0
    assert int(order.stats.count.sum()) > 0
    host = small.load(tmp_path / "w.safetensors")
    canvas = host.problems("select", 2).canvas
    tokens = dprm.decode(host.model(), canvas, order, mask_id=SIX.mask_id, aux=host.state_of).tokens
    assert not bool((tokens == SIX.mask_id).any())


def test_lessons_credit_terminal_rewards_inside_each_prompt(small):
    model = Transformer(small.config)
    host, data = small.wrap(model, CPU), small.data(0, CPU, None)

    def pool():
        return LearningPool(data, 8, host, learner(host, Gate(4, 16, 64)), 4, prompts=2, samples=3, every=5)

    taught, other = pool(), pool()
    assert taught.lesson(4, model) == {}
    assert set(taught.lesson(5, model)) == {"taught"}
    assert taught.order.step == 1
    assert taught.order.baseline == "prompt"
    blanks = [int((canvas == SIX.mask_id).sum()) for canvas in host.problems("train", 32).facts[:2]]
    assert int(taught.order.stats.count.sum()) == 3 * sum(blanks)
    taught.canvases(0)
    other.restore(taught.state())
    assert other.order.stats == taught.order.stats
    assert other.order.step == 1
    with pytest.raises(ValueError, match="order has observed rewards already"):
        LearningPool(data, 8, host, other.order, 4)


def test_a_learning_training_under_another_reward_or_gate_is_refused(small, tmp_path):
    model = Transformer(small.config)
    host, data, recipe = small.wrap(model, CPU), small.data(0, CPU, None), Recipe(rows=8, steps=2)

    def training(host=host, ready=8, **lessons):
        pool = LearningPool(
            data, 8, host, learner(host, Gate(0, 2, ready)), 4, **{"prompts": 2, "samples": 2, "every": 1, **lessons}
        )
        return Training(Transformer(small.config), pool, recipe, tmp_path)

    training().run()
    assert training().step == 2
    for changes, named in (
        ({"ready": 9}, "law.order.gate.2 is 8 there and 9 here"),
        ({"samples": 3}, "law.samples is 2 there and 3 here"),
        ({"host": host.with_decoding(temperature=1.0)}, r"law.decoding.1.temperature is 0\.0 there and 1\.0 here"),
        ({"host": host.with_preference({"solved": 1.0})}, "law.preference.1.weights"),
    ):
        with pytest.raises(ValueError, match=named):
            training(**changes)


def test_what_cannot_work_is_refused_before_any_work(small, tmp_path):
    def data(seed, device, work):
        raise AssertionError("work has begun")

    (tmp_path / "file").write_text("")
    task = replace(small, data=data)
    for law, changes, named in (
        ("easy", {}, "law is 'easy': expected one of random, confidence, dprm"),
        ("random", {"problems": 0}, "problems is 0"),
        ("dprm", {"every": 0}, "every is 0"),
        ("random", {"device": "abacus"}, "device is 'abacus': this machine does not have it"),
        ("random", {"out": tmp_path}, "expected a file for weights"),
        ("dprm", {"out": tmp_path / "w.dprm"}, "expected a file for weights"),
        ("random", {"out": tmp_path / "file" / "w.safetensors"}, "out cannot be written"),
        ("random", {"work": tmp_path / "file"}, "work cannot be written"),
        ("random", {"width": 33}, "width 33"),
    ):
        with pytest.raises(ValueError, match=named):
            run(task, law, tmp_path, **changes)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (["gpt"], "there is no host 'gpt': expected one of"),
        (["puma", "--law", "easy"], "law is 'easy'"),
        (["puma", "--rate", "nan"], "rate is nan"),
        (["puma", "--rate", "-1"], "rate is -1.0"),
        (["puma", "--minutes", "0"], "minutes is 0.0"),
        (["puma", "--minutes", "-3"], "minutes is -3.0"),
        (["puma", "--steps", "5", "--minutes", "1"], "expected exactly one of them"),
        (["puma", "--out", "."], "expected a file for weights"),
        (["puma", "--out", "file/w.safetensors"], "out cannot be written"),
        (["puma", "--device", "abacus"], "this machine does not have"),
        pytest.param(
            *(["puma", "--device", "cuda"], "there is no CUDA device here"),
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is an accelerator"),
        ),
    ],
)
def test_the_command_refuses_at_the_door_in_one_line(tmp_path, monkeypatch, how, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    shown = CliRunner().invoke(app, ["train", *how])
    assert shown.exit_code == 2
    assert message in shown.output
    assert shown.output.count("\n") == 1
    assert not list(tmp_path.rglob("*.safetensors"))


def test_progress_is_kept_apart_from_the_scores(small, tmp_path, monkeypatch):
    monkeypatch.setattr("dprm.hosts.task_of", lambda name, data=None: small)
    where = ["--out", str(tmp_path / "w.safetensors"), "--work", str(tmp_path)]
    how = ["--law", "dprm", "--steps", "3", "--rows", "8", "--limit", "2", "--json", *where]
    shown = CliRunner().invoke(app, ["train", "puma", *how])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["weights"] == str(tmp_path / "w.safetensors")
    assert "puma dprm  3/3" in shown.stderr
    assert (tmp_path / "w.dprm").is_file()


def test_unknown_hosts_are_named():
    with pytest.raises(ValueError, match="there is no host 'gpt'"):
        task_of("gpt")


def test_the_tasks_of_the_hosts_fit_their_budgets():
    for name in ("dmpo", "puma", "puma_words"):
        task = task_of(name)
        assert Transformer(task.config).parameter_count() < 8_000_000
        assert Transformer(task.shaped(64, 2)).config.width == 64


def test_a_training_may_begin_with_weights_of_its_shape(small, tmp_path):
    run(small, "random", tmp_path / "first")
    run(small, "random", tmp_path / "second", start=tmp_path / "first" / "w.safetensors")
    first, second = (weights(tmp_path / name)[0] for name in ("first", "second"))
    anew = {name: weight.detach() for name, weight in Transformer(small.config).named_parameters()}
    moved = sum(float((second[name] - first[name]).float().norm()) for name in first)
    assert 0 < moved < sum(float((second[name] - anew[name]).float().norm()) for name in first)
    with pytest.raises(ValueError, match="another shape"):
        run(small, "random", tmp_path / "third", start=tmp_path / "first" / "w.safetensors", width=64)
