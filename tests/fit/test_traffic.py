"""A served model's choices and later rewards become a policy: the same bits in any order, and an account."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.fit.traces import Traces, read_shard
from dprm.fit.traffic import learn, read_traces
from dprm.fit.traffic_account import Account
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas

PROMPTS, ANSWERS, LENGTH = 60, 4, 8


def serve(folder: Path, every: int = 7, seed: int = 0) -> dict[str, dict[str, object]]:
    """An engine that explores, and an empty policy beside it; its requests with their rewards."""
    selector = Selector(None, mask_id=MASK, explore=True, traces=Traces(folder, engine="mock", every=every))
    model, told = MockDenoiser(seed), {}
    for number in range(PROMPTS):
        tokens = masked_canvas(ANSWERS, LENGTH)
        tokens[:, 0] = number % MASK
        names = [f"{number}-{answer}" for answer in range(ANSWERS)]
        masked = tokens == MASK
        requests = Requests.begin(names, masked)
        shown = []
        while masked.any():
            logits = model(tokens)
            logits[..., MASK] = -torch.inf
            confidence, token = logits.softmax(-1).max(-1)
            own = torch.zeros_like(masked)
            own[torch.arange(ANSWERS), torch.where(masked, confidence, -1.0).argmax(1)] = True
            chosen = selector.select(own, confidence, masked, requests)
            shown.append(confidence[chosen])
            tokens = torch.where(chosen, token, tokens)
            masked = tokens == MASK
        # The reward likes that unsure positions come early.
        early = torch.stack(shown[:2]).mean(0)
        for name, reward in zip(names, (1.0 - early).tolist(), strict=True):
            told[name] = {"request": name, "reward": reward, "prompt": f"p{number}"}
    selector.traces.flush()
    return told


def write(path: Path, told) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in told))
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    return folder, serve(folder / "traces")


def test_what_is_written_is_what_was_chosen(served):
    folder, told = served
    shards = sorted((folder / "traces").iterdir())
    assert len(shards) > 10
    seen = []
    for path in shards:
        _, columns, header = read_shard(path)
        assert header["cells"] == [8, 16, 1]
        assert header["engine"] == "mock"
        own = [header["requests"][index] for index in columns["request"].tolist()]
        seen += list(zip(own, columns["position"].tolist(), strict=True))
        # The cell is that of the confidence and of the share that was revealed.
        progress = 1 - columns["left"].float() / (LENGTH - 2)
        cell = (progress * 8).int().clamp(max=7) * 16 + (columns["confidence"] * 16).int().clamp(max=15)
        assert torch.equal(cell, columns["cell"])
    assert len(seen) == len(set(seen)) == PROMPTS * ANSWERS * (LENGTH - 2)
    assert {name for name, _ in seen} == set(told)


def test_shards_and_rewards_in_any_order_and_number_give_the_same_bits(served, tmp_path):
    folder, told = served
    policy, account = learn(folder / "traces", write(tmp_path / "a.jsonl", told.values()))
    again = tmp_path / "again"
    again.mkdir()
    for number, path in enumerate(sorted((folder / "traces").iterdir(), reverse=True)):
        shutil.copy(path, again / f"{number:04}.traces")
    other, _ = learn(again, write(tmp_path / "b.jsonl", reversed(told.values())))
    together = serve(tmp_path / "together", every=10_000)
    assert len(list((tmp_path / "together").iterdir())) == 1
    third, _ = learn(tmp_path / "together", write(tmp_path / "c.jsonl", together.values()))
    for number, each in enumerate((policy, other, third)):
        each.save(tmp_path / f"{number}.dprm")
    files = {(tmp_path / f"{number}.dprm").read_bytes() for number in range(3)}
    assert len(files) == 1
    assert account.requests == PROMPTS * ANSWERS


def test_values_that_explain_rewards_are_taken_and_others_refused(served, tmp_path):
    folder, told = served
    policy, account = learn(folder / "traces", write(tmp_path / "a.jsonl", told.values()))
    assert account.explained[1] > 0
    assert policy.guidance == account.guidance == 1.0
    generator = torch.Generator().manual_seed(0)
    noise = [{**entry, "reward": float(torch.rand((), generator=generator))} for entry in told.values()]
    policy, account = learn(folder / "traces", write(tmp_path / "b.jsonl", noise))
    assert account.explained[1] <= 0
    assert policy.guidance == 0.0
    policy, account = learn(folder / "traces", write(tmp_path / "b.jsonl", noise), guidance=2.0)
    assert policy.guidance == 2.0
    assert "as you asked" in account.reason


def test_statistics_are_those_of_observing_the_requests_at_once(served, tmp_path):
    folder, told = served
    policy, _ = learn(folder / "traces", write(tmp_path / "a.jsonl", told.values()), ready=3.0, beta=2.0)
    traffic = read_traces(folder / "traces", Account())
    order = dprm.Order(ready=3.0, beta=2.0)
    reward = torch.tensor([told[name]["reward"] for name in traffic.names], dtype=torch.float64)
    group = torch.tensor([int(told[name]["prompt"][1:]) for name in traffic.names])
    from dprm.fit.events import Events

    order.observe(Events(len(reward), traffic.request, traffic.cell), reward, group)
    assert policy.stats == order.stats
    assert policy.baseline == "prompt"


def test_the_account_says_what_was_missing(served, tmp_path):
    folder, told = served
    again = tmp_path / "again"
    shutil.copytree(folder / "traces", again)
    first, second = sorted(again.iterdir())[:2]
    shutil.copy(first, again / "copy.traces")
    (again / "cut.traces").write_bytes(second.read_bytes()[:100])
    entries = [entry for name, entry in told.items() if name != "3-1"] + [
        {"request": "nobody", "reward": 0.5, "prompt": "x"}
    ]
    write(tmp_path / "a.jsonl", entries)
    policy, account = learn(again, tmp_path / "a.jsonl")
    assert account.unreadable == ["cut.traces"]
    assert len(account.repeated) == 1
    assert (account.without_reward, account.without_trace) == (1, 1)
    assert account.named == {"reward": ["3-1"], "trace": ["nobody"]}
    text = "\n".join(account.lines())
    for part in ("cut.traces cannot be read", "1 requests without a reward, such as 3-1", "such as nobody"):
        assert part in text
    clean, _ = learn(folder / "traces", tmp_path / "a.jsonl")
    assert clean.digest == policy.digest


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], "line 1 is '{': expected"),
        (
            ['{"request": "0-0", "reward": 0.5}', '{"request": "0-0", "reward": 0.6}'],
            "line 2: request '0-0' has another",
        ),
        (['{"request": "nobody", "reward": 0.5}'], "has no reward of any request"),
        (['{"request": "0-0", "reward": 1.5}'], "reward.row 0. is 1.5: outside the declared reward_range"),
        (['{"request": "0-0", "reward": NaN}'], "reward.row 0. is nan"),
        (
            ['{"request": "0-0", "reward": 0.5, "prompt": "a"}', '{"request": "0-1", "reward": 0.5}'],
            "request '0-1' has no prompt, and others have",
        ),
    ],
)
def test_bad_rewards_are_named(served, tmp_path, lines, message):
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=message):
        learn(served[0] / "traces", tmp_path / "bad.jsonl")


def test_traces_of_two_grids_are_not_mixed(served, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(served[0] / "traces", again)
    tokens = masked_canvas(1, 4)
    selector = Selector(dprm.Order(bins=4).policy(), mask_id=MASK, traces=again)
    masked = tokens == MASK
    selector.select(masked, masked.float(), masked, Requests.begin(["x"], masked))
    selector.traces.flush()
    with pytest.raises(ValueError, match=r"has cells = .*, and .* has \[8, "):
        learn(again, write(tmp_path / "a.jsonl", served[1].values()))
    with pytest.raises(ValueError, match="has no shard of traces"):
        learn(tmp_path, tmp_path / "a.jsonl")


def test_the_command_writes_policy_and_account(served, tmp_path):
    folder, told = served
    rewards = write(tmp_path / "a.jsonl", told.values())
    out = tmp_path / "new.dprm"
    arguments = ["fit", "--traces", str(folder / "traces"), "--rewards", str(rewards), "--out", str(out)]
    result = CliRunner().invoke(app, [*arguments, "--gate", "0,0,8", "--beta", "2"])
    assert result.exit_code == 0, result.output
    assert "240 requests with 1,440 choices" in result.output
    policy = dprm.Policy.load(out, beta=2.0)
    assert policy.gate.ready == 8
    account = json.loads(out.with_suffix(".account.json").read_text())
    assert account["kind"] == "dprm.traffic"
    assert account["requests"] == 240
    assert policy.notes["mask_id"] == str(MASK)
    Selector(out, mask_id=MASK)
    with pytest.raises(dprm.order.PolicyError, match=f"fitted with mask_id = {MASK}, and this model has 3"):
        Selector(out, mask_id=3)
    for bad in (["fit"], ["fit", "dmpo", *arguments[1:3]], ["fit", "dmpo", *arguments[1:]]):
        result = CliRunner().invoke(app, bad)
        assert result.exit_code == 2
        assert "expected either a host, or --traces with --rewards" in result.output


def test_choices_of_two_policies_are_kept_apart(tmp_path):
    traces = Traces(tmp_path)
    Selector(None, mask_id=MASK, traces=traces)
    Selector(dprm.Order().policy(), mask_id=MASK, traces=traces)  # The same policy again.
    with pytest.raises(ValueError, match="make a Traces for each Selector; they may have the same folder"):
        Selector(dprm.Order(bins=4).policy(), mask_id=MASK, traces=traces)


def test_a_writer_that_fails_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    selector = Selector(None, mask_id=MASK, traces=tmp_path / "file")
    masked = masked_canvas(1, 4) == MASK
    selector.select(masked, masked.float(), masked, Requests.begin(["x"], masked))
    with pytest.raises(OSError, match="file"):
        selector.traces.flush()
