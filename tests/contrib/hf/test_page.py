"""The page of Hugging Face checkpoints: every block and every command of it, and what it says."""

import json
import shlex

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.contrib.hf import parity, small
from dprm.contrib.hf.llada import LLaDA
from dprm.decode import Fixed, advance, begin
from tests.contrib.hf import upstream
from tests.pages import ROOT, blocks, run

PAGE = "docs/huggingface.md"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names = run(PAGE, {"__name__": "page"})
    return folder, names


def test_from_a_checkpoint_to_answers_in_the_lines_of_the_page(shown):
    folder, names = shown
    assert dprm.Policy.load(folder / "words.dprm").digest == names["learned"].policy.digest
    assert len(names["answers"]) == 32
    assert all(each.calls == 4 and max(each.step_map) == 4 for each in names["answers"])
    assert isinstance(names["words"].model(), LLaDA)
    assert names["sequences"].shape == (2, 112)


def test_every_command_of_the_page_works(shown, monkeypatch):
    folder, _ = shown
    monkeypatch.chdir(folder)
    lines = [line for code in blocks(PAGE, "shell") for line in code.splitlines() if line.startswith("dprm ")]
    assert len(lines) == 6
    for line in lines:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    assert (folder / "trace.jsonl").read_text().count("\n") == 32
    assert "<svg" in (folder / "words.html").read_text()


def test_the_numbers_of_the_page_are_those_of_the_card():
    card = json.loads((ROOT / "results" / "huggingface.json").read_text())
    text = (ROOT / PAGE).read_text()
    for where in ("own host", "checkpoint"):
        numbers = card[where]
        cells = [f"{numbers[name]:.3f}" for name in ("confidence", "policy")]
        gain = f"{numbers['gain']:+.3f} [{numbers['low']:+.3f}, {numbers['high']:+.3f}]"
        assert f"| {where} | {' | '.join(cells)} | {gain} |" in text
    assert f"{card['problems']} problems" in text
    for share in card["same answers"].values():
        assert f"{share:.1%}" in text


def test_a_model_behind_the_door_is_what_it_is_in_its_own_host(tmp_path):
    """Logits, answers under the committed policy, and their rewards."""
    own = dprm.hosts.load("puma_words").at("4")
    door = parity.through_the_door(tmp_path, 12)
    problems = own.problems("test", 12)
    assert (door.asked.canvas == problems.canvas).all()
    assert (door.model()(problems.canvas) - own.model()(problems.canvas)).abs().max() < 1e-3
    policy = dprm.Policy.load(ROOT / "weights" / "puma_words.dprm")
    order = dprm.Order.from_policy(policy)
    ours, theirs = (
        advance(each.model(), begin(problems.canvas, each.decoding), order, door.decoding) for each in (own, door)
    )
    same = (ours.tokens == theirs.tokens).all(1)
    assert same.double().mean() > 0.9
    prompt = problems.canvas[:, :64]
    model, attended = door.checkpoint.denoiser.model, torch.ones_like(prompt)
    public = upstream.llada(model, prompt, attended, 48, 48, 6, door.decoding.mask_id)
    native = door.with_decoding(count=Fixed(8))
    by_confidence = advance(door.model(), begin(problems.canvas, native.decoding), dprm.Order(), native.decoding)
    assert torch.equal(public, by_confidence.tokens)
    rewards = door.judge(door.asked, theirs.tokens)
    assert rewards[same].tolist() == own.judge(problems, ours.tokens)[same, 0].tolist()
    assert small.reward("nonsense", {"numbers": [1], "answer": 1}) == 0
