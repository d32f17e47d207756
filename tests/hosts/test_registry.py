"""Hosts by name, and the weights they need."""

import importlib
import json
import shutil
from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode import Fixed
from dprm.fit.montecarlo import is_local
from dprm.host import weights
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.hosts import ENTRIES, load, task_of, trainings_of
from dprm.hosts.dmpo import canvas
from dprm.hosts.dmpo.host import Countdown
from dprm.hosts.puma.board import NINE
from dprm.hosts.puma.host import Sudoku
from dprm.hosts.puma_words import words
from dprm.hosts.puma_words.host import WordProblems
from dprm.order import Order
from dprm.train.denoiser import Denoiser, save_weights
from dprm.train.finetuning import FineTunings
from dprm.train.transformer import Config, Transformer


def tiny(vocabulary, sides):
    return Denoiser(Transformer(Config(vocabulary, width=32, depth=1, heads=2, sides=sides)))


def test_committed_weights_are_those_of_the_manifest_and_small_enough():
    listed = weights.manifest()
    assert sum(entry["bytes"] for entry in listed.values()) < 40_000_000
    for name, entry in listed.items():
        assert weights.checked(name, "").stat().st_size == entry["bytes"]
        assert entry["command"]
        assert entry["metrics"]
    policies = {name for name in listed if name.endswith(".dprm")}
    assert set(listed) <= {entry.weights for entry in ENTRIES.values()} | policies


@pytest.mark.parametrize("name", [name for name in weights.manifest() if name.endswith(".dprm")])
def test_committed_policies_are_for_the_committed_hosts(name):
    policy = dprm.Policy.load(weights.checked(name, ""))
    # The policy of a host as it is, or in another setting, which is named after it.
    assert policy.notes["host"] == name.removesuffix(".dprm").partition("-")[0]
    host = load(policy.notes["host"])
    if policy.notes.get("variant") == "unconditional":
        host = host.at("unconditional")
    try:
        problems = host.problems("fit", 2)
    except ValueError as error:  # Cells of a package are no part of this repository.
        pytest.skip(str(error))
    blanks = int((problems.canvas == host.decoding.mask_id).sum(1).max())
    host = host.with_decoding(count=Fixed(16 if blanks > 16 else 1))
    if blanks <= 16:
        problems = host.problems("fit", 200)
    way = Decode(dprm.Order.from_policy(policy))
    rollout = decoded(host, problems, {name: way})[name]
    # Values that are asked prompt by prompt are not in the policy: by itself it is the host's order.
    assert bool(rollout.changed.any()) is (not is_local(policy) and policy.guidance > 0)


def test_missing_and_damaged_weights_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path))
    with pytest.raises(ValueError, match=r"there are no weights .*dmpo\.safetensors; make them with: dprm train dmpo"):
        load("dmpo")
    assert not ENTRIES["dmpo"].present
    model = Transformer(Config(canvas.VOCABULARY, width=32, depth=1, heads=2, sides=canvas.SIDES))
    save_weights(tmp_path / "dmpo.safetensors", model, {})
    weights.record(tmp_path / "dmpo.safetensors", "make", {"solved": 0.0})
    assert isinstance(load("dmpo"), Countdown)
    assert json.loads((tmp_path / "manifest.json").read_text())["dmpo.safetensors"]["command"] == "make"
    data = bytearray((tmp_path / "dmpo.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "dmpo.safetensors").write_bytes(bytes(data))
    with pytest.raises(ValueError, match="is damaged"):
        load("dmpo")


def test_an_unknown_host_is_named():
    with pytest.raises(ValueError, match="there is no host 'gpt': expected one of dmpo, prism, puma, puma_words"):
        load("gpt")
    for of_ours in (task_of, trainings_of):
        with pytest.raises(ValueError, match=r"host .*'gpt'.*: expected one of dmpo, prism, puma, puma_words"):
            of_ours("gpt")


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if weights.present(entry.weights)])
def test_what_is_told_of_a_host_beforehand_is_what_it_says(name):
    entry, host = ENTRIES[name], load(name)
    assert (host.name, host.domain, host.ordered) == (name, entry.domain, entry.ordered)
    assert entry.state == "here"
    assert host.weights == weights.manifest()[entry.weights]["sha256"][:16]
    # Not every host is studied, and arms of fine-tunings decode as they were trained.
    trainings = getattr(importlib.import_module(entry.module), "TRAININGS", None)
    assert trainings is None or trainings.orders or isinstance(trainings, FineTunings)


@pytest.mark.parametrize(
    "host",
    [
        Countdown(tiny(canvas.VOCABULARY, canvas.SIDES)),
        Sudoku(tiny(NINE.vocabulary, NINE.sides)),
        WordProblems(tiny(words.VOCABULARY, words.SIDES)),
    ],
)
def test_hosts_decode_and_judge_their_own_problems(host):
    problems = host.problems("test", 3)
    assert len(problems) == 3
    assert problems.digest != host.problems("fit", 3).digest
    host, order = host.with_decoding(count=Fixed(9)), Order(aux=host.decoding.states)
    result = Decode(order).result(host, problems, 0, host.model())
    assert not (result.tokens == host.decoding.mask_id).any()
    scores = host.scores(problems, result.tokens)
    assert scores.shape == (3, len(host.metrics))
    assert ((scores >= 0) & (scores <= 1)).all()
    order.observe(result.trace, host.reward(scores))
    assert all(host.show(token) for token in range(host.decoding.mask_id + 1))
    assert host.show(host.decoding.mask_id) == "·"


def test_a_right_answer_is_rewarded():
    from dprm.hosts.dmpo.problems import generate

    host = Countdown(tiny(canvas.VOCABULARY, canvas.SIDES))
    made = generate("test", 5, 4, distinct=True)
    problems = host.posed(made.listed())
    assert host.judge(problems, made.tokens.long()).tolist() == [[1.0, 1.0]] * 5
    assert host.judge(problems, problems.canvas).tolist() == [[0.0, 0.0]] * 5


def test_peoples_own_problems_are_read_and_those_that_do_not_fit_are_named(tmp_path):
    host = Countdown(tiny(canvas.VOCABULARY, canvas.SIDES))
    lines = [
        '{"numbers": [30, 100, 93], "target": 23}',
        '{"numbers": [30], "target": 23}',
        '{"numbers": [30, 101], "target": 23}',
        '{"numbers": [30, 10], "target": 0}',
        '{"numbers": [30, 10]}',
        "nonsense",
        "",
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    problems, left_out = host.read_problems(tmp_path / "mine.jsonl")
    assert problems.facts == [((100, 93, 30), 23)]
    assert [line.split(":")[0] for line in left_out] == ["line 2", "line 3", "line 4", "line 5", "line 6"]
    sudoku = Sudoku(tiny(NINE.vocabulary, NINE.sides))
    lines = ["5" + "." * 80, "0" * 80, "x" * 81, "." * 81, "55" + "." * 79, "123456780" + "." * 8 + "9" + "0" * 63]
    (tmp_path / "mine.txt").write_text("\n".join(lines))
    problems, left_out = sudoku.read_problems(tmp_path / "mine.txt")
    assert problems.canvas.tolist() == [[4] + [9] * 80]
    said = ["", "", "there is no clue", "holds a digit twice", "it has no solution"]
    assert all(reason in line for reason, line in zip(said, left_out, strict=True))


def test_cells_of_the_hosts_mean_what_they_say():
    host = Sudoku(tiny(NINE.vocabulary, NINE.sides))
    grid = torch.full((1, 81), NINE.mask_id)
    grid[0, 1:9] = torch.arange(8)  # eight of the twenty peers of the first cell
    reading = dprm.read(host.model()(grid))
    last = torch.arange(81).remainder(9).view(1, 81)
    last[0, :9] = torch.tensor([8, *range(8)])  # No peer of the first cell has its digit.
    last[0, [9, 10, 11, 18, 19, 20, 27, 36, 45, 54, 63, 72]] = 7
    assert host.decoding.state_of(grid, replace(reading, tokens=last))[0, 0] == int(8 / 20 * 4)
    last[0, 72] = 8  # Now one in the column would receive it too.
    assert host.decoding.state_of(grid, replace(reading, tokens=last))[0, 0] == int(8 / 20 * 4) + 4
    assert host.decoding.state_of(grid, replace(reading, tokens=last))[0, 80] % 4 == 0


def test_a_model_that_cannot_be_compiled_is_named(monkeypatch):
    monkeypatch.setattr(WordProblems, "model", lambda self: lambda tokens: tokens)
    with pytest.raises(ValueError, match=r"'puma_words'.*--compile"):
        load("puma_words", compiled=True)


ON_GPU = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
)


COMPILER = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=r"neither is here: leave out --compile"):
        load("puma", compiled=True)


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=COMPILER), ON_GPU])
def test_a_compiled_model_gives_nearly_the_same_logits(device):
    posed = load("puma").problems("select", 8).canvas.to(device)
    plain, fused = (load("puma", device, compiled).model()(posed) for compiled in (False, True))
    torch.testing.assert_close(plain, fused, atol=0.2, rtol=0.05)
    assert float((plain.argmax(-1) == fused.argmax(-1)).float().mean()) > 0.99
