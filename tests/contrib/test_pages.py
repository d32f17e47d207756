"""The pages of the engines run as they stand."""

import shlex
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy
import pytest
import torch
from transformers.trainer_callback import CallbackHandler, TrainerCallback, TrainerControl, TrainerState
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.contrib.requests import Requests
from dprm.fit.traces import read_shard
from tests.contrib import sampler_with_topk, stand_ins, upstreams
from tests.contrib.adapters import committed, of_arrays, of_positions, of_unmasking
from tests.contrib.engines import MASK, VOCABULARY, policy, states
from tests.contrib.test_training import reward_of
from tests.contrib.test_upstreams import competing
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
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] * (group == "sglang.srt.plugins"))
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


def module(monkeypatch, name, **contents):
    """A module of somebody else's, and the packages that it lies in."""
    parts = name.split(".")
    for size in range(1, len(parts) + 1):
        path = ".".join(parts[:size])
        if path not in sys.modules:
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
    vars(sys.modules[name]).update(contents)
    for size in range(1, len(parts)):
        parent = sys.modules[".".join(parts[:size])]
        setattr(parent, parts[size], sys.modules[".".join(parts[: size + 1])])
    return sys.modules[name]


def requests_of(folder="traces"):
    """The names in the traces that a page has written."""
    (path,) = Path(folder).iterdir()
    return read_shard(path)[2]["requests"]


def two():
    x, before = states(0)
    return x[:2], before[:2]


def test_dinfer(monkeypatch):
    class Threshold(stand_ins.Decoder):
        def __init__(self, temperature, threshold, mask_id):
            super().__init__(threshold)

    def generate(decoder):
        x, before = two()
        decoder.block_init(before, 0)
        decoder.decode(x, 0, 12, before)

    module(monkeypatch, "dinfer.decoding.parallel_strategy", ThresholdParallelDecoder=Threshold)
    run("docs/engines/dinfer.md", {"MASK": MASK, "generate": generate})
    assert requests_of() == ["request-1", "request-2"]


def test_vllm(monkeypatch):
    x, before = two()
    remask, default = stand_ins.batched_remask, stand_ins.SurestTwo
    module(monkeypatch, "dllm_plugin.sampling.diffusion_sampler", batched_remask=remask)
    module(monkeypatch, "vllm_dllm_plugin.remasking.llada2_default", Llada2DefaultRemaskingPolicy=default)
    sampler = SimpleNamespace()
    sampler.denoise = lambda: sampler._remask_fn(x, before, MASK, 0.7)
    given = {"MASK": MASK, "sampler": sampler, "draft": before[0].tolist(), "logits": x[0]}
    names = run("docs/engines/vllm.md", given)
    assert requests_of() == ["request-1", "request-2"]
    assert len(names["step"].next_input_block) == 12


def test_lmdeploy(monkeypatch):
    x, before = two()
    place = "lmdeploy.pytorch.strategies.dllm.unmasking"
    module(monkeypatch, place, UnmaskingProcessor=lambda config: stand_ins.Unmasking(config))
    sampler = SimpleNamespace()
    sampler.step = lambda: of_unmasking(sampler.unmasking_processor, x, before)
    run("docs/engines/lmdeploy.md", {"MASK": MASK, "dllm_config": 12, "sampler": sampler})
    assert requests_of() == ["request-1", "request-2"]


def test_d2cache(monkeypatch):
    vanilla = module(
        monkeypatch, "src.generation.vanilla", generate_step=lambda unmasking_fn: of_positions(unmasking_fn, *two())
    )
    vanilla.vanilla_generate = lambda: vanilla.generate_step(unmasking_fn=stand_ins.unmasking_fn)
    names = run("docs/engines/d2cache.md", {"MASK": MASK})
    assert names["record"].shape == (2, 12)
    assert requests_of() == ["request-1", "request-2"]


def test_dllm(monkeypatch):
    module(monkeypatch, "dllm.core.samplers")
    monkeypatch.setattr(sys.modules["dllm.core.samplers"], "mdlm", sampler_with_topk, raising=False)
    x, before = two()
    given = {"MASK": MASK, "VOCABULARY": VOCABULARY, "model": lambda tokens: x, "canvas": before, "torch": torch}
    names = run("docs/engines/dllm.md", given)
    assert not (names["sequences"] == MASK).any()


def test_mlx_vlm(monkeypatch):
    x, before = states(0)
    monkeypatch.setitem(sys.modules, "mlx", ModuleType("mlx"))
    monkeypatch.setitem(sys.modules, "mlx.core", numpy)
    sys.modules["mlx"].core = numpy
    diffusion = module(
        monkeypatch, "mlx_vlm.generate.diffusion", _diffusion_confidence_transfer_mask=stand_ins.mlx_transfer_mask
    )
    generate = lambda: of_arrays(diffusion._diffusion_confidence_transfer_mask, x[:1], before[:1])  # noqa: E731
    run("docs/engines/mlx-vlm.md", {"MASK": MASK, "generate": generate})
    assert requests_of() == ["request-1"]


def test_nemo(monkeypatch):
    generate = module(monkeypatch, "generate", get_transfer_index=stand_ins.transfer_index)
    generate.run = lambda: committed(generate.get_transfer_index, *two())
    names = run("docs/engines/nemo.md", {"MASK": MASK})
    assert names["answers"].shape == (2, 12)
    assert requests_of() == ["request-1", "request-2"]


def test_the_hosts_of_the_paper(monkeypatch):
    policy(signal="random").save("random.dprm")
    x, before = states(0)
    net = upstreams.Net()
    monkeypatch.setitem(sys.modules, "hts_sampler", upstreams)
    given = {
        "MASK": MASK,
        "VOCABULARY": VOCABULARY,
        "prompt": before,
        "model": net,
        "logits": x,
        "log_probs": x.log_softmax(-1),
        "diffusion_generate": lambda prompt, generation_tokens_hook_func: upstreams.dream(
            net, prompt, 4, generation_tokens_hook_func
        ),
        "trainer": SimpleNamespace(generate=upstreams.generate),
        "sampler": SimpleNamespace(mdlm=upstreams.Mdlm()),
        "protein_model": upstreams.Dplm(),
        "state": competing(upstreams.Dplm(), 0),
        "diffusion": upstreams.Diffusion(net),
        "t": torch.full((6, 1), 0.6),
        "dt": 0.2,
        "score": lambda tokens, sigma: net(tokens),
        "pool": upstreams.PhasedMasking(before, before),
    }
    names = run("docs/engines/upstreams.md", given)
    for name in ("text", "rollouts", "answers", "after", "cells"):
        assert names[name].shape == before.shape
    for name in ("rollouts", "answers", "cells"):
        assert not (names[name] == MASK).any()


def test_training():
    logged = {}

    class Report(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **named):
            logged.update(logs)

    def train():
        for turn in range(2):
            answers = trainer.generate(model=upstreams.Net(), prompt=states(turn)[1], steps=4)
            trainer.reward_funcs[0](prompts=["p"] * 6, completions=answers)
        trainer.callback_handler.on_log(None, TrainerState(), TrainerControl(), {"loss": 1.0})
        names["selector"].select(
            *[torch.ones(2, 3, dtype=torch.bool)] * 3, Requests.begin(["a", "b"], torch.ones(2, 3) > 0)
        )

    trainer = SimpleNamespace(generate=upstreams.generate, train=train)
    trainer.callback_handler = CallbackHandler([Report()], None, None, None, None)
    run_of = SimpleNamespace(log=lambda facts, step: logged.update(facts, step=step))
    names = {"MASK": MASK, "trainer": trainer, "reward": reward_of, "step": 7, "run": run_of}
    names |= {"rewards": [0.0, 1.0], "prompts": ["p", "q"]}
    run("docs/engines/training.md", names)
    assert logged["loss"] == 1.0
    assert "dprm/order_change" in logged
    assert logged["step"] == 7
    assert dprm.Policy.load("my-model.dprm").step == 2
