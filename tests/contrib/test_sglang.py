"""The algorithm in a released SGLang: its registry, its plug-ins, its synchronous and its mixed rounds."""

import importlib
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest
import torch

import dprm
from dprm.contrib.sglang import NAME
from dprm.fit.traces import read_shard
from tests.contrib.engines import MASK, VOCABULARY, as_on_an_accelerator, policy, states
from tests.contrib.sglang_wheel import Shells, unpacked_wheel
from tests.pages import ROOT, blocks

pytestmark = pytest.mark.slow
BLOCK = 12


@pytest.fixture(scope="module")
def wheel():
    home = unpacked_wheel()
    if home is None:
        pytest.skip("the wheel of SGLang cannot be had here")
    return home


@pytest.fixture
def sglang(wheel, tmp_path, monkeypatch):
    """The algorithms of SGLang, after its own loader of plug-ins has run with dprm installed beside it."""
    info = tmp_path / "site" / "mine-0.dist-info"
    info.mkdir(parents=True)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["sglang.srt.plugins"]
    lines = [f"{name} = {value}" for name, value in declared.items()]
    (info / "entry_points.txt").write_text("\n".join(["[sglang.srt.plugins]", *lines]))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "meta_path", [Shells(wheel), *sys.meta_path])
    importlib.import_module("sglang.srt.plugins").load_plugins()
    yield importlib.import_module("sglang.srt.dllm.algorithm")
    for name in [name for name in sys.modules if name.split(".")[0] == "sglang"]:
        del sys.modules[name]


class Runner:
    """A model whose logits depend on the neighbours of each position; counts its forwards."""

    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.left, self.right = (torch.randn(VOCABULARY, VOCABULARY, generator=generator).round() for _ in range(2))
        self.place = torch.randn(BLOCK, VOCABULARY, generator=generator).round()
        for table in (self.left, self.right, self.place):
            table[:, MASK] = -30.0
        self.calls = 0

    def forward(self, batch, pp_proxy_tensors=None):
        self.calls += 1
        tokens = batch.input_ids.view(-1, BLOCK)
        logits = self.left[tokens.roll(1, 1)] + self.right[tokens.roll(-1, 1)] + self.place
        output = SimpleNamespace(full_logits=logits.view(-1, VOCABULARY))
        return SimpleNamespace(logits_output=output, can_run_graph=False)


def batch_of(tokens, names, prompt=None):
    rows = len(tokens)
    positions = torch.arange(BLOCK).repeat(rows) + 64
    return SimpleNamespace(
        batch_size=rows, input_ids=tokens.reshape(-1).clone(), rids=names, positions=positions, dllm_prompt_mask=prompt
    )


def algorithm(sglang, name, together=False, **settings):
    config = SimpleNamespace(
        algorithm=name, algorithm_config=settings, block_size=BLOCK, mask_id=MASK, first_done_first_out_mode=together
    )
    return sglang.get_algorithm(config)


NAMES = [f"request-{row}" for row in range(6)]
BASES = [
    {"base": "LowConfidence", "threshold": 0.6},
    {"base": "LowConfidence", "threshold": 0.99},
    {"base": "JointThreshold", "threshold": 0.5, "edit_threshold": 0.4, "max_post_edit_steps": 3},
    {"base": "JointThreshold", "threshold": 0.5, "vectorized_decoding": True},
]


def synchronous(algorithm, tokens, names=NAMES):
    batch = batch_of(tokens, names)
    runner = Runner()
    algorithm.run(runner, batch)
    return batch.input_ids.view_as(tokens), runner.calls


def first_done_first_out(algorithm, tokens, names=NAMES):
    """Rounds of the scheduler: every request carries its own state, in a batch that is mixed anew each time."""
    runner, done, state = Runner(), {}, dict.fromkeys(names)
    now = dict(zip(names, tokens.clone(), strict=True))
    turn = 0
    while now:
        turn += 1
        chosen = sorted(now, key=lambda name: (int(name[-1]) * 5 + turn * 7) % 11)[: max(1, len(now) - turn % 2)]
        batch = batch_of(torch.stack([now[name] for name in chosen]), chosen)
        _, ids, accepted, states, _ = algorithm.run(runner, batch, [state[name] for name in chosen])
        for row, name in enumerate(chosen):
            state[name], now[name] = states[row], torch.tensor(ids[row])
            if accepted[row]:
                done[name] = now.pop(name)
    return torch.stack([done[name] for name in names])


@pytest.mark.parametrize("settings", BASES, ids=lambda settings: f"{settings['base']}-{len(settings)}")
@pytest.mark.parametrize("loop", [synchronous, first_done_first_out])
def test_without_a_policy_it_is_the_base_algorithm(sglang, loop, settings):
    together = loop is first_done_first_out
    own = {key: value for key, value in settings.items() if key != "base"}
    for seed in range(10):
        _, tokens = states(seed)
        expected = loop(algorithm(sglang, settings["base"], together, **own), tokens)
        result = loop(algorithm(sglang, NAME, together, **settings), tokens)
        if loop is synchronous:
            assert result[1] == expected[1]
            expected, result = expected[0], result[0]
        assert torch.equal(result, expected)


@pytest.mark.parametrize("settings", BASES[:2], ids=str)
def test_a_policy_changes_the_order_and_both_loops_agree(sglang, tmp_path, settings):
    policy().save(tmp_path / "p.dprm")
    settings = {**settings, "policy": str(tmp_path / "p.dprm")}
    own = {key: value for key, value in settings.items() if key == "threshold"}
    differ = 0
    for seed in range(10):
        _, tokens = states(seed)
        result, _ = synchronous(algorithm(sglang, NAME, **settings), tokens)
        assert not (result == MASK).any()
        assert torch.equal(first_done_first_out(algorithm(sglang, NAME, True, **settings), tokens), result)
        plain, _ = synchronous(algorithm(sglang, "LowConfidence", **own), tokens)
        differ += int(not torch.equal(result, plain))
    assert differ


@pytest.mark.parametrize("explore", [False, True])
def test_one_request_alone_is_treated_as_among_others(sglang, tmp_path, explore):
    policy().save(tmp_path / "p.dprm")
    ours = algorithm(sglang, NAME, policy=str(tmp_path / "p.dprm"), explore=explore)
    _, tokens = states(2)
    together, _ = synchronous(ours, tokens)
    for row, name in enumerate(NAMES):
        alone, _ = synchronous(ours, tokens[[row]], [name])
        assert torch.equal(alone[0], together[row])


def test_a_mask_in_the_prompt_stays(sglang, tmp_path):
    policy().save(tmp_path / "p.dprm")
    tokens = torch.full((2, BLOCK), MASK)
    prompt = torch.zeros(2, BLOCK, dtype=torch.bool)
    prompt[:, :4] = True
    batch = batch_of(tokens, NAMES[:2], prompt)
    algorithm(sglang, NAME, policy=str(tmp_path / "p.dprm")).run(Runner(), batch)
    assert torch.equal(batch.input_ids.view(2, BLOCK) == MASK, prompt)


@pytest.mark.parametrize("rule", ["top_m", "soft_bon"])
def test_no_wait_is_added_and_the_tensor_stays_itself(sglang, tmp_path, monkeypatch, rule):
    policy(rule=rule).save(tmp_path / "p.dprm")
    _, tokens = states(1)
    counts = {}
    chosen = {"policy": str(tmp_path / "p.dprm"), "traces": str(tmp_path / "traces")}
    for name, settings in (("LowConfidence", {}), (NAME, chosen)):
        each, batch = algorithm(sglang, name, **settings), batch_of(tokens, NAMES)
        carried, home = each.init_step_state(batch), batch.input_ids
        logits = Runner().forward(batch).logits_output.full_logits
        each.step(batch, logits, carried)
        with as_on_an_accelerator(monkeypatch) as counted:
            each.step(batch, logits, carried)
        counts[name] = counted.count
        assert batch.input_ids is home
    assert counts[NAME] <= counts["LowConfidence"]


def test_traces_are_written_by_request(sglang, tmp_path):
    ours = algorithm(sglang, NAME, traces=str(tmp_path / "traces"))
    _, tokens = states(0)
    synchronous(ours, tokens)
    ours.selector.traces.flush()
    (path,) = (tmp_path / "traces").iterdir()
    _, columns, header = read_shard(path)
    assert header["engine"] == "sglang"
    for row, name in enumerate(NAMES):
        places = columns["position"][columns["request"] == header["requests"].index(name)]
        assert sorted(places.tolist()) == [64 + place for place in (tokens[row] == MASK).nonzero()[:, 0].tolist()]


def test_only_the_first_rank_writes(sglang, tmp_path, monkeypatch):
    monkeypatch.setattr("dprm.contrib.sglang._rank", lambda: 1)
    assert algorithm(sglang, NAME, traces=str(tmp_path / "traces")).selector.traces is None


def test_the_policy_is_the_file_byte_for_byte(sglang, tmp_path):
    policy().save(tmp_path / "p.dprm")
    ours = algorithm(sglang, NAME, policy=str(tmp_path / "p.dprm"))
    ours.selector.policy.save(tmp_path / "again.dprm")
    assert (tmp_path / "again.dprm").read_bytes() == (tmp_path / "p.dprm").read_bytes()


def test_a_policy_of_another_model_is_refused(sglang, tmp_path):
    dprm.Order().policy(mask_id="156895").save(tmp_path / "p.dprm")
    with pytest.raises(dprm.order.PolicyError, match="fitted with mask_id = 156895"):
        algorithm(sglang, NAME, policy=str(tmp_path / "p.dprm"))
    fitted = policy()
    fitted.notes["vocabulary"] = "156896"
    fitted.save(tmp_path / "q.dprm")
    with pytest.raises(dprm.order.PolicyError, match="fitted with vocabulary = 156896, and this model has 9"):
        synchronous(algorithm(sglang, NAME, policy=str(tmp_path / "q.dprm")), states(0)[1])
    config = SimpleNamespace(
        algorithm=NAME, algorithm_config={}, block_size=BLOCK, mask_id=None, first_done_first_out_mode=False
    )
    with pytest.raises(ValueError, match="mask_id is None: dprm chooses among masked positions"):
        sglang.get_algorithm(config)


def test_the_page_has_settings_the_algorithm_takes(sglang, tmp_path, monkeypatch):
    """The YAML of the page, and its line that looks at the algorithm."""
    monkeypatch.chdir(tmp_path)
    policy().save("my-model.dprm")
    (text,) = blocks("docs/engines/sglang.md", "yaml")
    settings = dict(line.split("#")[0].strip().split(": ") for line in text.splitlines())
    settings["threshold"] = float(settings["threshold"])
    ours = algorithm(sglang, NAME, **settings)
    result, _ = synchronous(ours, states(0)[1])
    assert not (result == MASK).any()


def test_importing_the_adapter_imports_no_engine():
    code = "import sys, dprm.contrib.sglang; assert 'sglang' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
