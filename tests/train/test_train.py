"""Training a host by its name, in every law, and going on after a kill."""

import json

import pytest
import torch

from dprm.hosts.puma.board import SIX
from dprm.hosts.puma.host import Sudoku
from dprm.hosts.puma.puzzles import generate
from dprm.hosts.puma.symmetry import SudokuData, of_split
from dprm.train import checkpoint
from dprm.train.denoiser import Denoiser
from dprm.train.learning import LearningPool
from dprm.train.recipe import Recipe
from dprm.train.task import Task, task_of
from dprm.train.train import LAWS, train
from dprm.train.transformer import Config

STEPS = 6


@pytest.fixture
def small(monkeypatch):
    """The Sudoku task on 6×6 with few puzzles."""
    puzzles = generate(SIX, 120)
    task = Task(
        config=Config(SIX.vocabulary, width=32, depth=1, heads=1, sides=SIX.sides, rotary=False),
        data=lambda seed, device, work: SudokuData(of_split(puzzles, SIX, "train"), SIX, seed, device),
        wrap=lambda model, device: Sudoku(Denoiser(model), SIX, device),
        phases=4,
    )
    monkeypatch.setattr("dprm.train.train.task_of", lambda name: task)
    return task


def run(law, folder, **changes):
    recipe = Recipe(rows=8, steps=STEPS, teach_every=2, evaluations=1, **changes)
    return train("puma", law, recipe, out=folder / "w.safetensors", work=folder, problems=4)


def weights(folder):
    return checkpoint.load(folder / "w.safetensors")


@pytest.mark.parametrize("law", LAWS)
def test_every_law_trains_and_says_how_well_it_decodes(small, law, tmp_path):
    scores = run(law, tmp_path)
    assert set(scores) == {f"solved_{signal}_{width}" for signal in ("confidence", "random") for width in (1, 2, 3)}
    _, facts = weights(tmp_path)
    assert facts["law"] == law
    assert facts["steps"] == STEPS
    log = [json.loads(line) for line in (tmp_path / f"puma-{law}" / "log.jsonl").read_text().splitlines()]
    assert sum("taught" in entry for entry in log) == (3 if law == "dprm" else 0)


@pytest.mark.parametrize("law", LAWS)
def test_a_killed_training_ends_in_the_same_weights(small, law, tmp_path, monkeypatch):
    run(law, tmp_path / "whole", save_every=0.0)
    from dprm.train.training import Training

    update, calls = Training._update, []

    def killed(self):
        calls.append(0)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Training, "_update", killed)
    with pytest.raises(KeyboardInterrupt):
        run(law, tmp_path / "cut", save_every=0.0)
    monkeypatch.setattr(Training, "_update", update)
    run(law, tmp_path / "cut", save_every=0.0)
    (a, _), (b, _) = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_lessons_credit_terminal_rewards_inside_each_prompt(small):
    from dprm.train.transformer import Transformer

    host = small.wrap(Transformer(small.config), torch.device("cpu"))
    pool = LearningPool(small.data(0, torch.device("cpu"), None), 8, host, 4, prompts=2, samples=3)
    pool.lesson(host, 0)
    assert pool.order.step == 1
    assert pool.order.baseline == "prompt"
    blanks = [int((canvas == SIX.mask_id).sum()) for canvas in host.problems("train", 32).facts[:2]]
    assert int(pool.order.stats.count.sum()) == 3 * sum(blanks)
    other = LearningPool(small.data(0, torch.device("cpu"), None), 8, host, 4, prompts=2, samples=3)
    pool.canvases(0)
    other.restore(pool.state())
    assert other.order.stats == pool.order.stats
    assert other.order.step == 1


def test_unknown_hosts_and_laws_are_named(small, tmp_path):
    with pytest.raises(ValueError, match="law is 'easy': expected one of random, confidence, dprm"):
        run("easy", tmp_path)
    with pytest.raises(ValueError, match="there is no host 'gpt'"):
        task_of("gpt")


def test_the_tasks_of_the_hosts_fit_their_budgets():
    from dprm.train.transformer import Transformer

    for name in ("dmpo", "puma", "puma_words"):
        task = task_of(name)
        assert Transformer(task.config).parameter_count() < 8_000_000
        assert Transformer(task.shaped(64, 2)).config.width == 64
