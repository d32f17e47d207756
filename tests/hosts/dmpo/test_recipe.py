"""The recipe runs end to end, and a second call only collects what is there."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

from dprm.hosts.dmpo.posttraining import ARMS

RECIPE = Path(__file__).parents[3] / "recipes/dmpo.py"


@pytest.fixture(autouse=True)
def settings_of_torch():
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)


@pytest.fixture
def rehearse(tmp_path, monkeypatch, capsys):
    def run(*options):
        command = [str(RECIPE), "--tiny", "--evaluate", "4", "5", "--updates", "3", *options]
        command += ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", command)
        runpy.run_path(str(RECIPE), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_a_rehearsal_gives_weights_successes_and_results(tmp_path, rehearse):
    rehearse()
    names = {f"{arm}.safetensors" for arm in ARMS} | {"dprm.policy", "success.safetensors", "results.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert {arm: entry["updates"] for arm, entry in results["arms"].items()} == dict.fromkeys(ARMS, 3)
    assert set(results["pass"]["start"]) == {"4", "5", "all", "hard"}
    assert set(results["differences"][0]) == {"treated", "control", "problems", "first", "unbiased"}

    assert "pass@1" not in rehearse()
    assert json.loads((tmp_path / "out/results.json").read_text()) == results
    with pytest.raises(SystemExit, match="begun with other settings"):
        rehearse("--seed", "1")


def test_without_weights_there_is_no_run_but_a_rehearsal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(RECIPE)])
    with pytest.raises(SystemExit):
        runpy.run_path(str(RECIPE), run_name="__main__")
    assert "--start is missing" in capsys.readouterr().err
