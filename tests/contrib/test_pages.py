"""The pages of the engines run as they stand."""

import shlex
import sys
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.contrib.selector import Requests
from tests.contrib.engines import MASK, policy
from tests.mock_denoiser import MASK as MOCK
from tests.mock_denoiser import MockDenoiser, masked_canvas
from tests.pages import blocks, run


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty folder with a policy."""
    monkeypatch.chdir(tmp_path)
    policy().save("my-model.dprm")


def test_the_three_calls_of_an_adapter():
    names = run("docs/engines/README.md", {"MASK": MOCK, "model": MockDenoiser(), "tokens": masked_canvas(2, 12)})
    assert not (names["tokens"] == MOCK).any()
    assert names["selector"].traces.folder.is_dir()


def test_diffusers():
    diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")
    from tests.contrib.test_diffusers import PROMPT, Model

    scheduler = diffusers.BlockRefinementScheduler(block_length=8)
    names = {"model": Model(), "scheduler": scheduler, "tokenizer": None, "prompts": PROMPT[:2], "MASK": MASK}
    run("docs/engines/diffusers.md", names)
    assert names["answers"].sequences.shape == (2, 16)
    again = diffusers.LLaDA2Pipeline.from_pretrained("with-policy", model=None)
    assert again.scheduler.policy.digest == policy().digest
    assert len(list(names["tracing"].selector.traces.folder.iterdir())) == 1


@pytest.mark.slow
def test_sglang(monkeypatch, capsys):
    from dprm.contrib.sglang import register
    from tests.contrib.sglang_wheel import Shells, unpacked_wheel

    home = unpacked_wheel()
    if home is None:
        pytest.skip("the wheel of SGLang cannot be had here")
    monkeypatch.setattr(sys, "meta_path", [Shells(home), *sys.meta_path])
    entry = SimpleNamespace(name="dprm", value="", dist=None, load=lambda: register)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    run("docs/engines/sglang.md", {})
    for name in [name for name in sys.modules if name.split(".")[0] == "sglang"]:
        del sys.modules[name]
    assert "DPRM" in capsys.readouterr().out


def test_learning_from_traffic(capsys):
    told = []

    def serve(selector):
        model = MockDenoiser()
        for number in range(40):
            names = [f"{number}-{answer}" for answer in range(4)]
            tokens = masked_canvas(4, 6)
            tokens[:, 0] = number % MOCK
            requests = Requests.begin(names, tokens == MOCK)
            while (masked := tokens == MOCK).any():
                logits = model(tokens)
                logits[..., MOCK] = -100.0
                after = torch.where(masked & (masked.cumsum(1) == 1), logits.argmax(-1), tokens)
                tokens = selector.revise(tokens, after, logits, requests)
            told.extend((name, float(row[3] == 0), str(number)) for name, row in zip(names, tokens, strict=True))

    names = run("docs/engines/traffic.md", {"MASK": MOCK, "serve": serve, "judged": told})
    assert names["account"].requests == 160
    by_command = CliRunner().invoke(app, shlex.split(blocks("docs/engines/traffic.md", "shell")[0])[1:])
    assert by_command.exit_code == 0, by_command.output
    assert dprm.Policy.load("new.dprm").digest == names["policy"].digest
