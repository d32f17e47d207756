"""Nothing that is read can run code, take memory it does not hold, write elsewhere, or act in a terminal."""

import ast
import hashlib
import io
import json
import socket
import tarfile
import zipfile
from pathlib import Path

import numpy
import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.cli.terminal import say_json, visible_lines
from dprm.data import packages
from dprm.evaluate.outcomes import Outcomes
from dprm.report.visible import visible
from tests.draws import taught

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
RUN_CODE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__"}
# The code that it runs is that of a checkpoint which it has written a moment before.
WRITES_ITS_OWN = {"parity.py"}
TERMINAL = ROOT / "src" / "dprm" / "cli" / "terminal.py"


def calls(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def called(call):
    return ast.unparse(call.func)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src" / "dprm").as_posix())
def test_no_source_reads_what_could_run_code(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.split(".")[0] for name in names} & RUN_CODE, f"{path.name} imports {names}"
    for call in calls(tree):
        options = {option.arg: ast.unparse(option.value) for option in call.keywords}
        if called(call) in ("torch.load", "torch.hub.load", "torch.hub.load_state_dict_from_url"):
            assert options.get("weights_only") == "True", f"{path.name}: {ast.unparse(call)}"
        if called(call) in ("numpy.load", "np.load"):
            assert options.get("allow_pickle", "False") == "False", f"{path.name}: {ast.unparse(call)}"
        assert called(call) not in CALLS, f"{path.name}: {ast.unparse(call)}"
        assert not called(call).endswith((".extractall", ".extract")), f"{path.name}: {ast.unparse(call)}"
        assert options.get("shell") != "True", f"{path.name}: {ast.unparse(call)}"
        if path.name not in WRITES_ITS_OWN:
            assert options.get("trust_remote_code") != "True", f"{path.name}: {ast.unparse(call)}"


def test_the_network_is_used_in_one_file_only():
    modules = {"urllib.request", "http.client", "requests", "httpx", "aiohttp", "socket", "ftplib"}
    using = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if modules & set(names):
                using.add(path.relative_to(ROOT / "src" / "dprm").as_posix())
    assert using == {"data/packages.py"}


def test_commands_work_without_a_network(monkeypatch, tmp_path):
    def refused(*arguments, **options):
        raise AssertionError("a command asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    toy = f"{ROOT / 'tests' / 'toy_host.py'}:ToyHost"
    for line in (["hosts"], ["doctor"], ["theory", "--only", "myopic"], ["audit", "dmpo"]):
        assert CliRunner().invoke(app, line).exit_code == 0, line
    shown = CliRunner().invoke(app, ["compare", toy, "--limit", "4", "--work", str(tmp_path)])
    assert shown.exit_code == 0, shown.output


# ---- sizes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def memory(monkeypatch):
    """Tensors of more than a few megabytes are not given out."""
    zeros = torch.zeros

    def small(*size, **options):
        shape = size[0] if size and isinstance(size[0], tuple | list | torch.Size) else size
        assert all(isinstance(each, int) for each in shape)
        assert numpy.prod([*shape, 1.0]) < 1e7, f"memory for {shape} was asked for"
        return zeros(*size, **options)

    monkeypatch.setattr(torch, "zeros", small)


def changed(path, **changes):
    """The same file with other header fields."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = safetensors.torch.load(data)
    header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["dprm"]) | changes
    if "checksum" in header:
        from dprm.order.policy import _digest

        plain = {name: value for name, value in header.items() if name not in ("digest", "checksum")}
        header["checksum"] = _digest(plain, tensors)
    path.write_bytes(safetensors.torch.save(tensors, metadata={"dprm": json.dumps(header)}))


@pytest.mark.parametrize("cells", [[1000, 1000, 1000], [2**40, 1, 1], [1, 1, 2**30]])
def test_a_header_that_names_many_cells_takes_no_memory(tmp_path, memory, cells):
    stats = dprm.Stats(cells=12)
    stats.add(torch.tensor([1]), torch.tensor([0.5]))
    stats.save(tmp_path / "s")
    changed(tmp_path / "s", cells=[*cells, 1])
    with pytest.raises(ValueError, match=r"expected int64 \[\d+,4,2\]|at most 2\^31"):
        dprm.Stats.load(tmp_path / "s")
    taught(dprm.Order(phases=2, bins=3), 1).policy().save(tmp_path / "p")
    changed(tmp_path / "p", cells=cells)
    with pytest.raises(dprm.order.PolicyError, match=r"names [\d,]+ cells|at most 2\^31"):
        dprm.Policy.load(tmp_path / "p")


def test_a_safetensors_header_that_claims_more_than_the_file_is_refused(tmp_path):
    for size in (2**40, 2**62, 200):
        (tmp_path / "p").write_bytes(size.to_bytes(8, "little") + b"{}")
        with pytest.raises(ValueError, match="not a readable dprm file"):
            dprm.Policy.load(tmp_path / "p")


def test_outcomes_that_unpack_to_more_than_they_hold_are_refused(tmp_path):
    array = io.BytesIO()
    numpy.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": (2**40,)})
    with zipfile.ZipFile(tmp_path / "o.npz", "w") as packed:
        packed.writestr("arms.npy", array.getvalue() + b"12345678")
    with pytest.raises(ValueError, match=r"arms\.npy says shape \(1099511627776,\), more than it holds"):
        Outcomes.load(tmp_path / "o.npz")


# ---- archives and checksums ------------------------------------------------------------------------------------------


def evil_archives(folder):
    """Archives whose names lead out of the folder, or whose file is a link."""
    wheel, source = folder / "a.whl", folder / "a.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("../../outside.txt", "outside")
        archive.writestr("/outside.txt", "outside")
        archive.writestr("rows.txt", "rows")
    with tarfile.open(source, "w:gz") as archive:
        for name, kind in (("../../outside.txt", tarfile.REGTYPE), ("a/rows.txt", tarfile.SYMTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/hostname"
            archive.addfile(entry)
    return wheel, source


def test_archives_write_nothing_outside_and_links_are_not_followed(tmp_path):
    home = tmp_path / "a" / "b"
    home.mkdir(parents=True)
    wheel, source = evil_archives(home)
    assert packages._member(wheel, "rows.txt") == b"rows"
    with pytest.raises(ValueError, match=r"has no file rows\.txt"):
        packages._member(source, "rows.txt")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a.tar.gz", "a.whl"]


def test_a_cached_file_that_was_changed_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_CACHE", str(tmp_path))
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("data/../../rows.txt", "rows")
    source = packages.Source(
        "thing", "t.whl", hashlib.sha256(wheel.getvalue()).hexdigest(), "data/../../rows.txt", "MIT", ""
    )

    def given(*_):
        (tmp_path / "thing").mkdir(exist_ok=True)
        (tmp_path / "thing" / "t.whl.part").write_bytes(wheel.getvalue())
        return tmp_path / "thing" / "t.whl.part"

    monkeypatch.setattr(packages.Source, "_archive", given)
    path = source.obtain()
    assert path.parent == tmp_path / "thing"
    path.write_text("changed")
    assert source.obtain().read_text() == "rows"


def test_damaged_weights_are_not_loaded(tmp_path, monkeypatch):
    for name in ("manifest.json", "puma.safetensors"):
        (tmp_path / name).write_bytes((ROOT / "weights" / name).read_bytes())
    data = bytearray((tmp_path / "puma.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "puma.safetensors").write_bytes(data)
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path))
    with pytest.raises(ValueError, match="is damaged"):
        dprm.hosts.load("puma")


# ---- terminals -------------------------------------------------------------------------------------------------------

ACTING = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u200b[bold]x[/bold]\r"


def acts(text):
    return [hex(ord(each)) for each in text if each != "\n" and visible(each) != each]


def test_names_and_contents_of_files_cannot_act_in_a_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    policy = taught(dprm.Order(phases=2, bins=3), 1).policy(host=f"toy{ACTING}", estimator=ACTING)
    policy.save(tmp_path / "p.dprm")
    name = f"p{ACTING.replace('/', '')}.dprm"
    policy.save(tmp_path / name)
    (tmp_path / "host.py").write_text(
        "from tests.toy_host import ToyHost\nfrom dprm.host.metrics import Metric\n"
        f"class Evil(ToyHost):\n    name = variant = {ACTING!r}\n    metrics = (Metric({ACTING!r}),)\n"
    )
    (tmp_path / "problems.txt").write_text(f"ok\nbad {ACTING}\n")
    (tmp_path / "none.json").write_text(f'"{ACTING}"')
    lines = [
        ["policy", "p.dprm"],
        ["policy", "p.dprm", "--json"],
        ["policy", name],
        ["policy", ACTING],
        ["compare", "host.py:Evil", "--limit", "4", "--orders", "random"],
        ["compare", "host.py:Evil", "--limit", "4", "--orders", "random", "--json"],
        ["compare", "host.py:Evil", "--limit", "4", "--problems", "problems.txt"],
        ["compare", "host.py:Evil", "--limit", "4", "--policy", name],
        ["compare", ACTING],
        ["fit", "host.py:Evil", "--calls", "200", "--select", "8", "--estimator", "onpolicy", "--out", "e.dprm"],
        ["audit", ACTING],
        ["audit", "none.json"],
        ["merge", name, "p.dprm", "-o", "c.dprm"],
        ["report", name, "none.json"],
    ]
    for line in lines:
        shown = runner.invoke(app, line)
        assert shown.exception is None or isinstance(shown.exception, SystemExit), (line, shown.exception)
        assert not acts(shown.output), (line, acts(shown.output))


def test_json_of_a_command_reads_back_to_the_same_text(capsys):
    data = {"name": f"{ACTING} ü 中 \U0001f600 \ud800 \x85"}
    say_json(json.dumps(data, ensure_ascii=False))
    said = capsys.readouterr().out
    assert not acts(said)
    assert json.loads(said) == data
    assert visible_lines("a\nb\x1b") == "a\nb⟨U+001B⟩"


def test_commands_say_everything_through_the_one_door():
    for path in sorted(TERMINAL.parent.glob("*.py")):
        if path == TERMINAL:
            continue
        for call in calls(ast.parse(path.read_text())):
            assert called(call) not in ("typer.echo", "print", "Console", "typer.secho"), f"{path.name}: use `say`"
