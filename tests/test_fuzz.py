"""Whatever a file, a command line or an array holds: a result, or an error that says what is wrong; nothing else.

A corpus of good files is damaged in every way that a few bytes or a few JSON values can be: what is read back is either
refused with a message, or means exactly what it says.
"""

import copy
import json
import tempfile
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.evaluate.card import Card
from dprm.evaluate.outcomes import Outcomes
from dprm.evaluate.study import Study
from dprm.host import weights
from dprm.host.problem_files import read_json_lines
from dprm.order.files import read_tensors
from dprm.order.merging import Shards
from dprm.order.policy import _digest
from tests.draws import taught

ROOT = Path(__file__).parents[1]
TOY = f"{ROOT / 'tests' / 'toy_host.py'}:ToyHost"
# What a reader may raise: with a message, and for things that a person can mend.
SAID = (ValueError, OSError)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "confidence", "top_m", "head", "prompt", -1, 0, 1e308, 2**31, 2**63]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
few = settings(suppress_health_check=list(HealthCheck))


def files() -> dict[str, bytes]:
    """The corpus: a good file of every kind."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        taught(dprm.Order(phases=2, bins=3), 1).policy(host="toy").save(home / "policy")
        head = (ROOT / "weights" / "dmpo.dprm").read_bytes()
        stats = dprm.Stats(cells=3)
        stats.add(torch.tensor([1, 2]), torch.tensor([0.5, 1.0]))
        Shards.of("a", stats).save(home / "stats")
        shown = CliRunner().invoke(
            app, ["compare", TOY, "--limit", "6", "--orders", "random", "--out", f"{home}/card.json", "--work", folder]
        )
        assert shown.exit_code == 0, shown.output
        piece = next(home.rglob("*.rollout")).read_bytes()
        return {
            "policy": (home / "policy").read_bytes(),
            "head": head,
            "stats": (home / "stats").read_bytes(),
            "card": (home / "card.json").read_bytes(),
            "outcomes": (home / "card.outcomes.npz").read_bytes(),
            "manifest": (ROOT / "weights" / "manifest.json").read_bytes(),
            "piece": piece,
            "study": next(path for path in (ROOT / "results").glob("*-arms.json")).read_bytes(),
        }


CORPUS = files()
READERS = {
    "policy": dprm.Policy.load,
    "head": dprm.Policy.load,
    "stats": Shards.load,
    "card": Card.load,
    "outcomes": Outcomes.load,
    "piece": lambda path: read_tensors(path, "dprm.rollout"),
    "study": Study.load,
}


def refused_clearly(error):
    """An error is for people: it says something."""
    assert str(error).strip()


def read(kind, data):
    """What a reader makes of some bytes; None where it refuses them with a message."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        try:
            if kind == "manifest":
                (Path(folder) / "manifest.json").write_bytes(data)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("DPRM_WEIGHTS", folder)
                    return weights.manifest()
            return READERS[kind](path)
        except SAID as error:
            return refused_clearly(error)


@pytest.mark.parametrize("kind", CORPUS)
def test_good_files_are_read(kind):
    assert read(kind, CORPUS[kind]) is not None


@pytest.mark.parametrize("kind", CORPUS)
@given(data=st.data())
@few
def test_damaged_bytes_are_refused_or_read(kind, data):
    good = bytearray(CORPUS[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.integers(0, min(len(good), 4000) - 1) | st.integers(0, len(good) - 1))
        what = data.draw(st.sampled_from(["change", "cut", "insert"]))
        if what == "change":
            good[where] = data.draw(st.integers(0, 255))
        elif what == "cut":
            del good[where : where + data.draw(st.integers(1, 50))]
        else:
            good[where:where] = data.draw(st.binary(min_size=1, max_size=8))
    if not good:
        return
    back = read(kind, bytes(good))
    if back is not None and bytes(good) != CORPUS[kind] and kind in ("policy", "head"):
        # Every byte that matters is in the checksum.
        assert back.digest == read(kind, CORPUS[kind]).digest


@pytest.mark.parametrize("kind", CORPUS)
@given(data=st.binary(max_size=300))
@few
def test_any_bytes_are_refused_or_read(kind, data):
    read(kind, data)


def places(tree, path=()):
    """The way to every value of a JSON tree."""
    yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


def with_other(tree, path, value):
    """The tree with another value in one place, or without it."""
    if not path:
        return value
    tree = copy.deepcopy(tree)
    node = tree
    for key in path[:-1]:
        node = node[key]
    if value is Ellipsis:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return tree


def mutated(data, tree):
    ways = [path for path in places(tree) if path]
    # Shallow places matter most, and there are few of them.
    path = data.draw(st.sampled_from([way for way in ways if len(way) <= 2] or ways) | st.sampled_from(ways))
    return with_other(tree, path, data.draw(VALUES | st.just(Ellipsis)))


@pytest.mark.parametrize("kind", ["card", "study", "manifest"])
@given(data=st.data())
@few
def test_any_value_in_a_json_file_is_refused_or_read(kind, data):
    tree = mutated(data, json.loads(CORPUS[kind]))
    read(kind, json.dumps(tree).encode())


@pytest.mark.parametrize("kind", ["policy", "head", "stats"])
@given(data=st.data())
@few
def test_any_value_in_a_header_is_refused_or_acts(kind, data):
    whole = CORPUS[kind]
    size = int.from_bytes(whole[:8], "little")
    tensors = safetensors.torch.load(whole)
    header = json.loads(json.loads(whole[8 : 8 + size])["__metadata__"]["dprm"])
    header = mutated(data, header)
    if isinstance(header, dict) and "checksum" in header:
        # Whoever edits a file can also sign it: what is inside must be sound by itself.
        plain = {name: value for name, value in header.items() if name not in ("digest", "checksum")}
        header["checksum"] = _digest(plain, tensors)
    back = read(kind, safetensors.torch.save(tensors, metadata={"dprm": json.dumps(header)}))
    if isinstance(back, dprm.Policy):
        try:
            order = dprm.Order.from_policy(back)
        except SAID as error:
            refused_clearly(error)
            return
        logits = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0))
        aux = torch.zeros(2, 5, dtype=torch.int64) if back.cells.aux > 1 else None
        try:
            choice = order.select(dprm.read(logits), torch.ones(2, 5, dtype=torch.bool), 2, 0.5, aux=aux)
        except SAID as error:
            refused_clearly(error)
        else:
            assert choice.mask.sum(1).tolist() == [2, 2]


@given(lines=st.lists(st.text(max_size=40) | VALUES.map(lambda value: json.dumps(value)), max_size=6))
@few
def test_problem_files_are_read_or_refused_line_by_line(lines):
    lines = [line.replace("\n", " ") for line in lines]
    good = [json.dumps({"tokens": [number, 2, 9]}) for number in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problems"
        path.write_text("\n".join([good[0], *lines, good[1]]), encoding="utf-8", errors="surrogatepass")
        try:
            listed, left_out = read_json_lines(path, mask_id=9)
        except SAID as error:
            refused_clearly(error)
            return
        tokens = [each[0] for each in listed]
        assert [0, 2, 9] in tokens
        assert [1, 2, 9] in tokens
        assert all(9 in each and len(each) == 3 for each in tokens)
        assert len(listed) + len(left_out) <= len(lines) + 2


@given(
    data=st.data(),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool]),
)
@few
def test_any_logits_are_read_or_refused(data, dtype):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    fill = data.draw(st.sampled_from([0.0, 1e38, -1e38, float("nan"), float("inf"), -float("inf"), 1e-40]))
    logits = torch.zeros(shape)
    if logits.numel():
        logits.view(-1)[data.draw(st.integers(0, logits.numel() - 1))] = fill
    logits = logits.to(dtype)
    try:
        reading = dprm.read(logits)
    except (ValueError, TypeError) as error:
        refused_clearly(error)
        return
    assert len(shape) == 3
    for column in (reading.confidence, reading.margin, reading.entropy):
        assert torch.isfinite(column).all()
    assert ((reading.confidence >= 0) & (reading.confidence <= 1)).all()
    exact = torch.softmax(logits.double(), -1).amax(-1)
    torch.testing.assert_close(reading.confidence.double(), exact, rtol=1e-5, atol=1e-6)


@given(data=st.data())
@few
def test_a_trace_is_credited_wholly_or_refused(data):
    """Events of any rows and cells: an observation either counts them all, or nothing has changed."""
    order = dprm.Order(phases=2, bins=2)
    count = data.draw(st.integers(0, 5))
    numbers = st.integers(-2, 6)
    row = torch.tensor(data.draw(st.lists(numbers, min_size=count, max_size=count)), dtype=torch.int64)
    cell = torch.tensor(data.draw(st.lists(numbers, min_size=count, max_size=count)), dtype=torch.int64)
    rewards = data.draw(st.lists(st.floats() | st.floats(0, 1), min_size=1, max_size=4))

    class Seen:
        rows = len(rewards)

        def events(self):
            return row, cell

    fine = all(0 <= r < len(rewards) for r in row.tolist()) and all(0 <= c < 4 for c in cell.tolist())
    fine = fine and all(0 <= reward <= 1 for reward in rewards)
    try:
        order.observe(Seen(), torch.tensor(rewards, dtype=torch.float64))
    except (ValueError, TypeError, IndexError) as error:
        refused_clearly(error)
        assert not fine
        assert order.stats is None or int(order.stats.count.sum()) == 0
        return
    assert fine
    assert int(order.stats.count.sum()) == count


COMMANDS = ["hosts", "fit", "compare", "train", "study", "audit", "report", "policy", "data", "merge"]
WORDS = st.sampled_from(
    [
        *(
            "toy",
            TOY,
            "puma",
            "nothing:here",
            "missing.py:x",
            "",
            "-1",
            "0",
            "nan",
            "1e9",
            "--",
            "-o",
            "../x",
            "\x1b[2J",
        ),
        *(
            "--limit",
            "--rows",
            "--seed",
            "--width",
            "--split",
            "--engine",
            "--workers",
            "--orders",
            "--policy",
            "--out",
        ),
        *(
            "--preference",
            "--difficulty",
            "--guidance",
            "--gate",
            "--estimator",
            "--json",
            "--set",
            "--weights",
            "--from",
        ),
        *("ray", "random", "qed=1", "a=b", "select", "=", ",", "1,2", "card.json", "policy.dprm", "."),
    ]
)


@pytest.mark.slow
@given(command=st.sampled_from(COMMANDS), words=st.lists(WORDS | st.text(max_size=6), max_size=5))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_arguments_end_with_an_exit_code_and_a_message(command, words):
    # What would be a whole training or comparison is not what is tried here.
    words = [*words, *({"fit": ["--calls", "64", "--select", "2"], "compare": ["--limit", "1"]}.get(command, []))]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DPRM_CACHE", folder)
        patch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        for name in ("dprm.train.train.train", "dprm.evaluate.trainings.study"):
            patch.setattr(name, refused)
        Path("card.json").write_bytes(CORPUS["card"])
        Path("policy.dprm").write_bytes(CORPUS["policy"])
        shown = CliRunner().invoke(app, [command, *words])
        assert shown.exception is None or isinstance(shown.exception, SystemExit), (command, words, shown.exception)
        assert shown.exit_code in (0, 1, 2)
        if shown.exit_code:
            assert shown.output.strip()
        assert Path("card.json").read_bytes() == CORPUS["card"] or "card.json" in words
        assert Path("policy.dprm").read_bytes() == CORPUS["policy"] or "policy.dprm" in words


def refused(*arguments, **options):
    raise ValueError("nothing is trained here")
