"""The examples run, at small size, in an empty folder."""

import json
import runpy
import subprocess
import sys

import pytest

import dprm
from dprm.evaluate.card import Card
from tests.pages import ROOT


@pytest.fixture
def example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_a_model_of_your_own_to_its_verdict(example, tmp_path):
    said = example("own_model.py", 600)
    assert "verdict: apply" in said
    assert "one answer: [1, 1, 1, 1]" in said
    assert dprm.Policy.load(tmp_path / "bits.dprm").guidance > 0
    assert Card.load(tmp_path / "bits.json").split == "test"


def test_the_notebook_is_that_of_the_script_and_runs(tmp_path, monkeypatch):
    checked = subprocess.run([sys.executable, "examples/notebook.py", "--check"], cwd=ROOT, check=False)
    assert checked.returncode == 0, "run `python examples/notebook.py`"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["kernel", "600"])
    names = {}
    for cell in json.loads((ROOT / "examples" / "own_model.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["learned"].policy.guidance > 0


def test_a_server_learns_from_its_traffic(example):
    own, learned = example("traffic.py", 60).splitlines()[-2:]
    assert own == "own order  mean reward 0.00"
    assert float(learned.split()[-1]) > 0.9


@pytest.mark.slow
def test_a_host_from_data_to_page(example, tmp_path):
    said = example("host_to_page.py", 6, 120)
    assert "verdict: " in said
    html = (tmp_path / "runs" / "example" / "sudoku.html").read_text()
    assert "Comparison" in html
