"""The scheduler in the real pipeline of the installed diffusers."""

from types import SimpleNamespace

import pytest
import torch

diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")

from dprm.contrib.diffusers import DprmScheduler, Tracing  # noqa: E402
from dprm.contrib.selector import Selector  # noqa: E402
from dprm.order.policy import PolicyError  # noqa: E402
from tests.contrib.engines import MASK, VOCABULARY, as_on_an_accelerator, policy, states  # noqa: E402

PROMPT = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 0, 1]])


class Model(torch.nn.Module):
    """A model of the pipeline's interface: logits from the neighbours of each position, and from the position."""

    def __init__(self):
        super().__init__()
        self.config, self.device, self.dtype = SimpleNamespace(), torch.device("cpu"), torch.float32
        generator = torch.Generator().manual_seed(0)
        self.left, self.right = (torch.randn(VOCABULARY, VOCABULARY, generator=generator).round() for _ in range(2))
        self.place = torch.randn(64, VOCABULARY, generator=generator).round()
        for table in (self.left, self.right, self.place):
            table[..., MASK] = -30.0

    def forward(self, tokens, attention_mask, position_ids):
        logits = self.left[tokens.roll(1, 1)] + self.right[tokens.roll(-1, 1)] + self.place[position_ids]
        return SimpleNamespace(logits=logits)


def answer(scheduler, prompt=PROMPT, **settings):
    pipeline = diffusers.LLaDA2Pipeline(model=Model(), scheduler=scheduler)
    pipeline.set_progress_bar_config(disable=True)
    asked = {"gen_length": 13, "block_length": 8, "num_inference_steps": 4, "threshold": 2.0, "editing_threshold": None}
    asked |= {"mask_token_id": MASK, "output_type": "seq", "temperature": 0.0, **settings}
    return pipeline(input_ids=prompt, **asked).sequences


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"threshold": 0.5},
        {"editing_threshold": 0.3},
        {"temperature": 1.0},
        {"eos_token_id": 2},
        {"num_inference_steps": 8},
    ],
)
def test_an_empty_policy_gives_the_pipelines_own_answers(settings):
    own, ours = diffusers.BlockRefinementScheduler(), DprmScheduler()
    first = answer(own, generator=torch.Generator().manual_seed(0), **settings)
    second = answer(ours, generator=torch.Generator().manual_seed(0), **settings)
    assert torch.equal(first, second)


def test_a_policy_changes_answers_and_a_row_does_not_depend_on_its_batch():
    scheduler = DprmScheduler.of(policy(), diffusers.BlockRefinementScheduler(block_length=8))
    own, together = answer(diffusers.BlockRefinementScheduler()), answer(scheduler)
    assert not torch.equal(own, together)
    assert not (together == MASK).any()
    for row in range(len(PROMPT)):
        assert torch.equal(answer(scheduler, PROMPT[[row]])[0], together[row])


def test_every_step_commits_as_many_as_the_base_class_would_have(monkeypatch):
    scheduler, base = DprmScheduler.of(policy()), diffusers.BlockRefinementScheduler()
    for each in (scheduler, base):
        each.set_timesteps(4, block_length=12)
    for seed in range(20):
        x, before = states(seed)
        ours, own = (each.step(x, 0, before, mask_token_id=MASK) for each in (scheduler, base))
        assert torch.equal(ours.transfer_index.sum(1), own.transfer_index.sum(1))
        assert torch.equal(ours.prev_sample != before, ours.transfer_index)
        assert torch.equal(ours.sampled_tokens, own.sampled_tokens)
    assert scheduler.step(x, 0, before, mask_token_id=MASK, return_dict=False)[0].equal(ours.prev_sample)


def test_no_wait_is_added_to_a_step(monkeypatch):
    counts = {}
    x, before = states(0)
    for name, scheduler in (("own", diffusers.BlockRefinementScheduler()), ("ours", DprmScheduler.of(policy()))):
        scheduler.set_timesteps(4, block_length=12)
        scheduler.step(x, 0, before, mask_token_id=MASK)
        with as_on_an_accelerator(monkeypatch) as counted:
            scheduler.step(x, 1, before, mask_token_id=MASK)
        counts[name] = counted.count
    assert counts["ours"] <= counts["own"]


def test_no_wait_is_added_to_an_answer_and_its_traces(tmp_path, monkeypatch):
    tracing = Tracing(Selector(policy(), mask_id=MASK, traces=tmp_path), ["a", "b", "c"])
    traced = {"callback_on_step_end": tracing, "callback_on_step_end_tensor_inputs": list(tracing.tensor_inputs)}
    counts = []
    for scheduler, settings in (
        (diffusers.BlockRefinementScheduler(), {}),
        (DprmScheduler(), traced),
        (DprmScheduler.of(policy()), traced),
        (DprmScheduler.of(policy(rule="soft_bon")), traced),
    ):
        answer(scheduler, **settings)
        with as_on_an_accelerator(monkeypatch) as counted:
            answer(scheduler, **settings)
        counts.append(counted.count)
    # As many steps are made as without a policy: only what a step waits for could differ.
    assert counts == counts[:1] * 4


def test_scheduler_and_pipeline_come_back_with_their_policy(tmp_path):
    known = policy()
    known.save(tmp_path / "known.dprm")
    scheduler = DprmScheduler.of(tmp_path / "known.dprm", guidance=2.0, block_length=8)
    scheduler.save_pretrained(tmp_path / "scheduler")
    again = DprmScheduler.from_pretrained(tmp_path / "scheduler")
    assert (again.policy.digest, again.config.guidance, again.config.block_length) == (known.digest, 2.0, 8)
    again.policy.save(tmp_path / "again.dprm")
    assert (tmp_path / "again.dprm").read_bytes() == (tmp_path / "known.dprm").read_bytes()
    assert torch.equal(answer(again), answer(scheduler))
    pipeline = diffusers.LLaDA2Pipeline(model=None, scheduler=scheduler)
    pipeline.save_pretrained(tmp_path / "pipeline")
    loaded = diffusers.LLaDA2Pipeline.from_pretrained(tmp_path / "pipeline", model=None)
    assert type(loaded.scheduler) is DprmScheduler
    assert loaded.scheduler.policy.digest == known.digest


def test_a_model_without_a_mask_is_refused():
    x, before = states(0)
    scheduler = DprmScheduler.of(policy())
    scheduler.set_timesteps(4, block_length=12)
    with pytest.raises(ValueError, match="mask_id is None"):
        scheduler.step(x, 0, before)
    with pytest.raises(ValueError, match="mask_id is 77: outside the vocabulary of 9"):
        scheduler.step(x, 0, before, mask_token_id=77)
    for name, fitted, have in (("mask_id", 77, MASK), ("vocabulary", 50, VOCABULARY)):
        known = policy()
        known.notes[name] = str(fitted)
        other = DprmScheduler.of(known)
        other.set_timesteps(4, block_length=12)
        with pytest.raises(PolicyError, match=f"fitted with {name} = {fitted}, and this model has {have}"):
            other.step(x, 0, before, mask_token_id=MASK)
    with pytest.raises(PolicyError, match="damaged"):
        DprmScheduler(policy="not a policy")


@pytest.mark.parametrize("scheduler", [diffusers.BlockRefinementScheduler(), DprmScheduler.of(policy())])
def test_the_callback_writes_every_reveal_once(tmp_path, scheduler):
    selector = Selector(policy(), mask_id=MASK, traces=tmp_path)
    tracing = Tracing(selector, ["a", "b", "c"])
    answer(scheduler, callback_on_step_end=tracing, callback_on_step_end_tensor_inputs=list(tracing.tensor_inputs))
    selector.traces.flush()
    from dprm.fit.traces import read_shard

    (path,) = tmp_path.glob("*.traces")
    _, columns, header = read_shard(path)
    assert header["requests"] == ["a", "b", "c"]
    assert header["policy"] == policy().digest
    for row in range(3):
        places = columns["position"][columns["request"] == row]
        assert sorted(places.tolist()) == list(range(3, 16))
