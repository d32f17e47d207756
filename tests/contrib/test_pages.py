"""The pages of the engines run as they stand."""

import pytest

from tests.contrib.engines import MASK, policy
from tests.mock_denoiser import MASK as MOCK
from tests.mock_denoiser import MockDenoiser, masked_canvas
from tests.pages import run


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
