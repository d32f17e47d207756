"""A head from traffic, in a world where the value of every choice is known."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import dprm
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.fit.contrasts import Contrasts
from dprm.fit.traces import Traces, read_shard
from dprm.fit.traffic import learn
from tests.contrib.engines import as_on_an_accelerator
from tests.draws import logits as tied
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

PROMPTS, ANSWERS, LENGTH, WIDTH = 100, 4, 12, 2
MODEL = MockDenoiser()


def answer(selector: Selector, number: int, answers: int = ANSWERS) -> torch.Tensor:
    """[answers]: an engine that reveals the two surest; how far to the right the first four positions were, 0 … 1."""
    tokens = masked_canvas(answers, LENGTH)
    tokens[:, 0] = number % MASK
    masked = tokens == MASK
    requests = Requests.begin([f"{number}-{each}" for each in range(answers)], masked)
    right, place = [], torch.arange(LENGTH) / LENGTH
    while masked.any():
        logits = MODEL(tokens)
        logits[..., MASK] = -torch.inf
        confidence, token = logits.softmax(-1).max(-1)
        own = torch.zeros_like(masked).scatter(1, torch.where(masked, confidence, -1.0).topk(WIDTH).indices, True)
        chosen = selector.select(own, confidence, masked, requests, logits=logits, tokens=token)
        right.append((place * chosen).sum(1) / WIDTH)
        tokens = torch.where(chosen, token, tokens)
        masked = tokens == MASK
    return torch.stack(right[:2]).mean(0)


def serve(folder: Path, every: int = 7, contrasts: bool = True) -> list[dict[str, object]]:
    """Traces of an engine that explores, and rewards: what is right of the others goes first, and chance."""
    traces = Traces(folder, every=every)
    selector = Selector(None, mask_id=MASK, explore=True, traces=traces, contrasts=contrasts)
    generator, told = torch.Generator().manual_seed(0), []
    for number in range(PROMPTS):
        reward = answer(selector, number) + 0.1 * torch.randn(ANSWERS, generator=generator)
        for each, value in enumerate(reward.clamp(0.0, 1.0).tolist()):
            told.append({"request": f"{number}-{each}", "reward": value, "prompt": f"p{number}"})
    traces.flush()
    return told


def write(path: Path, told) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in told))
    return path


def mean_of(policy: dprm.Policy, **settings) -> float:
    selector = Selector(policy, mask_id=MASK, **settings)
    return float(torch.cat([answer(selector, number, 1) for number in range(MASK)]).mean())


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    return folder, serve(folder / "traces")


def test_a_head_learns_what_a_table_cannot_see(served, tmp_path):
    folder, told = served
    policy, account = learn(folder / "traces", write(tmp_path / "a.jsonl", told))
    assert policy.head is not None
    assert account.explained[1] > 0
    assert policy.guidance == account.guidance == 1.0
    own = mean_of(dprm.Order().policy())
    assert mean_of(policy) > own + 0.03
    assert mean_of(policy, guidance=10.0) > own + 0.1
    known = serve(tmp_path / "plain", contrasts=False)
    table, _ = learn(tmp_path / "plain", write(tmp_path / "b.jsonl", known), guidance=10.0)
    assert table.head is None
    assert mean_of(table) < own + 0.03


def test_a_head_of_noise_is_refused(served, tmp_path):
    folder, told = served
    generator = torch.Generator().manual_seed(1)
    noise = [{**entry, "reward": float(torch.rand((), generator=generator))} for entry in told]
    policy, account = learn(folder / "traces", write(tmp_path / "a.jsonl", noise))
    assert policy.guidance == 0.0
    assert account.explained is None or account.explained[1] <= 0


def test_requests_without_a_prompt_teach_a_head_too(served, tmp_path):
    folder, told = served
    plain = [{key: entry[key] for key in ("request", "reward")} for entry in told]
    policy, account = learn(folder / "traces", write(tmp_path / "a.jsonl", plain))
    assert account.learned == "head"
    assert account.explained[1] > 0
    assert mean_of(policy, guidance=10.0) > mean_of(dprm.Order().policy()) + 0.1


def test_a_contrast_says_nothing_about_the_canvas(served):
    total = torch.cat([read_shard(path)[1]["contrast"] for path in (served[0] / "traces").iterdir()]).double()
    assert len(total) == PROMPTS * ANSWERS * (LENGTH - 2) // WIDTH
    spread = total.std(0, correction=0)
    error = total.mean(0) / (spread / len(total) ** 0.5).clamp(min=1e-9)
    # 137 means of 2,000 steps, none of which is far from 0 by its own standard error.
    assert float(spread.max()) > 0.5
    assert float(error[spread > 1e-6].abs().max()) < 4.0


def test_heads_from_shards_in_any_order_are_the_same_bits(served, tmp_path):
    folder, told = served
    first, _ = learn(folder / "traces", write(tmp_path / "a.jsonl", told))
    again = tmp_path / "again"
    again.mkdir()
    for number, path in enumerate(sorted((folder / "traces").iterdir(), reverse=True)):
        shutil.copy(path, again / f"{number:04}.traces")
    second, _ = learn(again, write(tmp_path / "b.jsonl", reversed(told)))
    serve(tmp_path / "together", every=10_000)
    third, _ = learn(tmp_path / "together", tmp_path / "a.jsonl")
    for number, each in enumerate((first, second, third)):
        each.save(tmp_path / f"{number}.dprm")
    assert len({(tmp_path / f"{number}.dprm").read_bytes() for number in range(3)}) == 1


def test_bad_contrasts_are_named():
    contrasts = Contrasts.zero(2, 3)
    with pytest.raises(ValueError, match=r"contrast\[row 1, position 2\] is nan: expected a number"):
        contrasts.add(torch.tensor([0, 1]), torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, torch.nan]]))
    with pytest.raises(ValueError, match="contrasts have 3 features: this version of dprm has another number"):
        contrasts.head(torch.zeros(2, dtype=torch.float64), torch.arange(2), 1, torch.zeros(128, dtype=torch.int64))


def test_contrasts_are_of_draws_and_cost_no_wait(tmp_path, monkeypatch):
    for settings in ({}, {"explore": True}, {"traces": tmp_path}):
        with pytest.raises(ValueError, match="expected explore=True and traces"):
            Selector(None, mask_id=MASK, contrasts=True, **settings)
    selector = Selector(None, mask_id=MASK, explore=True, traces=tmp_path, contrasts=True)
    masked = torch.ones(3, 6, dtype=torch.bool)
    requests = Requests.begin(["a", "b", "c"], masked)
    own = torch.zeros_like(masked)
    own[:, :2] = True
    with pytest.raises(ValueError, match="the engine has to hand over its logits"):
        selector.select(own, torch.rand(3, 6), masked, requests)
    x = tied(0, 3, 6, 7)
    selector.select(own, None, masked, requests, logits=x)
    with as_on_an_accelerator(monkeypatch) as counted:
        selector.select(own, None, masked, requests, logits=x)
    assert counted.count == 0
