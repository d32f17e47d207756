"""What cannot be done is said at the door, in one line that names the option; nothing is made before."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dprm
from dprm.cli import app
from dprm.data.cores import cores
from dprm.host import weights
from tests.draws import taught

runner = CliRunner()
TOY = f"{Path(__file__).parents[1] / 'toy_host.py'}:ToyHost"


READS_FASTA = """
from dprm.data.fasta import Alphabet, read_fasta
from tests.toy_host import ToyHost


class Reads(ToyHost):
    def read_problems(self, path):
        return read_fasta(path, Alphabet("ACGT", "bases", 1, 8))
"""


def refused(*arguments):
    """What a command says that ends with exit code 2, without a traceback and at once."""
    began = time.process_time()
    shown = runner.invoke(app, [str(argument) for argument in arguments])
    assert shown.exit_code == 2, (arguments, shown.output, shown.exception)
    assert isinstance(shown.exception, SystemExit), shown.exception
    assert time.process_time() - began < 5
    assert len(shown.output) < 2000
    return " ".join(shown.output.replace("│", " ").split())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("host", ["dmpo", "puma"])
@pytest.mark.parametrize("command", ["compare", "fit"])
def test_a_file_without_a_problem_says_why(host, command):
    for name, text, said in [
        ("empty", "", "it is empty"),
        ("bad", "nonsense\n" + "x" * 100_000 + "\n", "line 1:"),
        ("deep", "[" * 100_000 + "]" * 100_000 + "\n", "line 1:"),
    ]:
        Path(name).write_text(text)
        assert f"dprm {command}: {name} holds no problem that can be used: {said}" in refused(
            command, host, "--problems", name
        )
    assert "/dev/zero is no regular file" in refused(command, host, "--problems", "/dev/zero")
    assert list(Path("runs").rglob("*.rollout")) == []


def test_a_host_that_gives_no_problem_of_a_file_is_named_too():
    Path("none").write_text("bad line\n")
    assert "none holds no problem that can be used: bad line" in refused("compare", TOY, "--problems", "none")


def test_a_byte_order_mark_loses_no_line():
    line = '{"numbers": [30, 100, 93], "target": 23}\n'
    Path("mine").write_bytes(b"\xef\xbb\xbf" + line.encode())
    shown = runner.invoke(app, ["compare", "dmpo", "--problems", "mine", "--width", "28", "--orders", "", "--json"])
    assert json.loads(shown.stdout)["count"] == 1
    assert "left out" not in shown.stderr


def test_contradictory_and_blank_sudokus_are_left_out():
    twice, blank, full = "55" + "." * 79, "." * 81, "1" * 81
    unsolvable = "12345678." + "." * 8 + "9" + "." * 63
    Path("mine").write_text("\n".join([twice, blank, full, unsolvable]))
    said = refused("compare", "puma", "--problems", "mine")
    for line in ("a row, column or box holds a digit twice", "there is no clue", "there is no blank"):
        assert line in said
    assert "line 4: it has no solution" in said


@pytest.mark.parametrize("command", [["compare", TOY], ["fit", TOY], ["train", "dmpo"], ["study", "dmpo", "--tiny"]])
def test_a_device_that_is_not_here_is_named(command):
    if not __import__("torch").cuda.is_available():
        assert "device is 'cuda': there is no CUDA device here" in refused(*command, "--device", "cuda")
    assert "device is 'gpu7': this machine does not have it; expected cpu or cuda" in refused(
        *command, "--device", "gpu7"
    )


@pytest.mark.parametrize(
    "command",
    [
        *(["compare", TOY], ["fit", TOY], ["train", "dmpo"], ["study", "dmpo", "--tiny"]),
        *(["audit", "--calibrate"], ["report", "card.json"]),
    ],
    ids=lambda command: command[0],
)
def test_a_result_that_cannot_be_written_is_refused_before_the_work(command):
    Path("file").write_text("not a folder")
    assert "out" in refused(*command, "--out", "file/result.json")
    assert Path("file").read_text() == "not a folder"
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", TOY, "--seed", "-3"], "'--seed'"),
        (["fit", TOY, "--seed", "-3"], "'--seed'"),
        (["fit", TOY, "--guidance", "abc"], "--guidance is 'abc': expected numbers from 0 with commas"),
        (["fit", TOY, "--guidance", "1,nan"], "--guidance is '1,nan'"),
        (["fit", TOY, "--gate", "1,2"], "--gate is '1,2': expected 3 numbers"),
        (["fit", TOY, "--estimator", "branched", "--beta", "nan"], "beta is nan"),
        (["fit", TOY, "--rule", "foo"], "--rule is 'foo': expected one of top_m"),
        (["compare", TOY, "--rule", "foo"], "--rule is 'foo': expected one of top_m"),
        (["compare", TOY, "--rule", "top_m"], "--rule says how policies select: give --policy as well"),
        (["compare", TOY, "--ablate"], "--ablate takes something away from a policy: give --policy as well"),
        (["train", "dmpo", "--rate", "nan"], "rate is nan"),
        (["train", "dmpo", "--minutes", "nan"], "minutes is nan"),
        (["study", "puma", "--weights", "random=missing"], "there is no checkpoint at missing"),
        (["study", "puma", "--tiny", "--set", "rate=nan"], "rate is nan"),
        (["compare", "puma", "--difficulty", "17"], "difficulty is '17': digging hardly ever leaves so few clues"),
        (["study", "puma", "--tiny", "--difficulty", "12-20"], "difficulty is '12-20'"),
        (["compare", "puma", "--difficulty", "1-3"], "difficulty is '1-3': expected how many clues a puzzle has, 9 to"),
        (["compare", "dmpo", "--difficulty", "90"], "difficulty is '90': expected how many numbers are given"),
    ],
)
def test_options_are_named(arguments, said):
    assert said in refused(*arguments)
    assert not Path("runs").exists() or not list(Path("runs").rglob("*.p*"))


def test_files_of_another_kind_are_named_for_what_they_are():
    Path("list.json").write_text("[1, 2]")
    Path("card.json").write_text(json.dumps({"kind": "comparison", "schema": 2, "arms": {}, "more": 1}))
    Path("text").write_text("no file of ours, but a longer text than a header")
    for path, said in [("list.json", "it is no JSON object"), ("card.json", "it has no 'metrics'")]:
        assert f"{path} is not a result card: {said}" in refused("audit", path)
    for path in ("list.json", "card.json", "text"):
        assert f"{path} is not a readable dprm file: it holds text" in refused("policy", path)
        refused("report", path)
        refused("compare", TOY, "--policy", path)
    for command in ("policy", "report", "audit"):
        assert "/dev/zero" in refused(command, "/dev/zero")
    Path("mine.py").write_text(READS_FASTA)
    said = refused("repair", "mine.py:Reads", "/dev/zero", "--out", "repaired.fa")
    assert "/dev/zero is no regular file" in said


def test_hosts_say_which_weights_are_damaged(tmp_path, monkeypatch):
    kept = weights.folder()
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path / "weights"))
    (tmp_path / "weights").mkdir()
    for name in ("manifest.json", "dmpo.safetensors"):
        (tmp_path / "weights" / name).write_bytes((kept / name).read_bytes())
    (tmp_path / "weights" / "puma.safetensors").write_bytes(b"damaged")
    listed = json.loads(runner.invoke(app, ["hosts", "--json"]).stdout)
    states = {entry["name"]: entry["state"] for entry in listed}
    assert (states["dmpo"], states["puma"], states["puma_words"]) == ("here", "damaged", "missing")
    assert [entry["present"] for entry in listed if entry["name"] in ("dmpo", "puma")] == [True, False]
    shown = runner.invoke(app, ["hosts"], env={"COLUMNS": "200"}).output
    assert "damaged" in shown
    assert "To make the weights of puma:" in shown


def test_a_fit_proposes_the_comparison_that_it_was_made_for():
    shown = runner.invoke(app, ["fit", TOY, "--calls", "300", "--select", "10", "--width", "2", "--temperature", "0.5"])
    assert shown.exit_code == 0, shown.output
    proposed = shown.output.split("try it with `dprm ")[1].split("`")[0].split()
    assert proposed == ["compare", TOY, "--width", "2", "--temperature", "0.5", "--policy", "runs/toy.dprm"]
    compared = runner.invoke(app, [*proposed, "--limit", "4", "--json"])
    assert compared.exit_code == 0, compared.output
    assert "misfits" not in json.loads(compared.stdout)["notes"]


def test_a_policy_among_the_committed_weights_is_entered_into_their_manifest(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path / "weights"))
    shown = runner.invoke(app, ["fit", TOY, "--calls", "1200", "--select", "40", "--out", "weights/toy.dprm"])
    assert shown.exit_code == 0, shown.output
    listed = json.loads(Path("weights/manifest.json").read_text())
    assert listed["toy.dprm"]["metrics"]["guidance"] == dprm.Policy.load("weights/toy.dprm").guidance > 0
    assert listed["toy.dprm"]["metrics"]["select_low"] > 0
    assert weights.checked("toy.dprm", "") == tmp_path / "weights" / "toy.dprm"


def test_a_head_takes_a_rule_of_deployment():
    how = ["fit", TOY, "--calls", "300", "--select", "10", "--rule", "shortlist_top_m"]
    shown = runner.invoke(app, how)
    assert shown.exit_code == 0, shown.output
    assert dprm.Policy.load("runs/toy.dprm").rule == "shortlist_top_m"


def test_a_policy_of_another_host_or_other_states_is_refused():
    taught(dprm.Order(), 1).policy(host="other").save("other.dprm")
    assert "host is 'toy' here, and the policy was fitted for 'other'" in refused(
        "compare", TOY, "--policy", "other.dprm"
    )


def test_hosts_and_cards_are_shown_without_what_pages_need(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] in ("altair", "jinja2", "vl_convert")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("dprm.report")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("altair", "jinja2", "vl_convert"):
        monkeypatch.setitem(sys.modules, name, None)
    for arguments in (["hosts", "--json"], ["audit", "puma_words", "--json"]):
        shown = runner.invoke(app, arguments)
        assert shown.exit_code == 0, shown.output
        assert json.loads(shown.stdout)
    assert 'install what charts need with `pip install "dprm[report]"`' in refused("report", "--all")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_what_the_command_needs_it_says_what_to_install(missing):
    hidden = f"import sys; sys.modules[{missing!r}] = None; from dprm.__main__ import main; main()"
    told = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stderr == f'dprm: there is no {missing} here: install the command with `pip install "dprm[cli]"`\n'


def test_the_command_is_a_module_too():
    told = subprocess.run([sys.executable, "-m", "dprm", "--help"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "compare" in told.stdout


def test_weights_and_cards_of_an_installed_package_are_found(tmp_path, monkeypatch):
    place = tmp_path / "lib" / "python3" / "site-packages" / "dprm" / "host" / "weights.py"
    monkeypatch.setattr(weights, "__file__", str(place))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv("DPRM_WEIGHTS", raising=False)
    assert weights.folder() == tmp_path / "share" / "dprm" / "weights"
    assert weights.shipped("results") == tmp_path / "share" / "dprm" / "results"


def test_cores_are_counted_where_the_system_does_not_say_which_may_be_used(monkeypatch):
    assert cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == (os.cpu_count() or 1)
