"""`dprm doctor` says what is wrong, and what to do."""

import importlib
import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from dprm.cli import app
from dprm.order import Order
from dprm.theory import selftest

runner = CliRunner()


@pytest.fixture
def no_interpreter(monkeypatch):
    """As nobody has it who does not ask for it."""
    monkeypatch.setattr(importlib.import_module("dprm.cli.doctor"), "backends", lambda device: ["torch"])


def test_a_whole_installation_passes_in_time(no_interpreter):
    began = time.monotonic()
    shown = runner.invoke(app, ["doctor", "--json"])
    assert shown.exit_code == 0, shown.output
    assert time.monotonic() - began < 20
    listed = {each["name"]: each for each in json.loads(shown.stdout)["findings"]}
    assert torch.__version__.startswith(listed["torch"]["seen"])
    assert listed["dmpo.safetensors"]["seen"] == "checksum holds"
    assert "6 agree with the exact chain" in listed["self-test on cpu, torch"]["seen"]


def test_every_way_to_read_logits_is_tried():
    """Also the kernels, by Triton's interpreter where there is no accelerator."""
    pytest.importorskip("triton.knobs")
    command = [sys.executable, "-m", "dprm", "doctor", "--json"]
    told = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    shown = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    listed = {each["name"]: each for each in json.loads(shown.stdout)["findings"]}
    assert "6 agree with the exact chain" in listed["self-test on cpu, triton"]["seen"]


def test_damaged_weights_fail_with_advice(tmp_path, monkeypatch, no_interpreter):
    entry = {"sha256": "0" * 64, "bytes": 3, "command": "dprm train puma", "metrics": {}}
    (tmp_path / "manifest.json").write_text(json.dumps({"puma.safetensors": entry, "gone.dprm": entry}))
    (tmp_path / "puma.safetensors").write_bytes(b"abc")
    monkeypatch.setenv("DPRM_WEIGHTS", str(tmp_path))
    shown = runner.invoke(app, ["doctor", "--json"])
    assert shown.exit_code == 1
    found = json.loads(shown.stdout)
    assert found["failed"] == ["puma.safetensors"]
    listed = {each["name"]: each for each in found["findings"]}
    assert "make it anew with: dprm train puma" in listed["puma.safetensors"]["advice"]
    assert listed["gone.dprm"]["seen"] == "missing"


def test_the_self_test_finds_what_computes_wrongly(monkeypatch):
    def failing():
        return {check.name for seed in range(3) for check in selftest.self_test("cpu", seed) if not check.holds}

    assert failing() == set()
    read = selftest.read
    with monkeypatch.context() as broken:
        broken.setattr(selftest, "read", lambda logits, backend: replace(read(logits), confidence=read(logits).margin))
        assert "reading" in failing()
    select = Order.select
    with monkeypatch.context() as broken:
        broken.setattr(Order, "select", lambda self, reading, *rest, **more: select(Order(), reading, *rest[:3]))
        assert {"top_m", "soft_bon"} <= failing()
    with monkeypatch.context() as broken:
        broken.setattr(torch.Tensor, "exp", lambda self: torch.exp(self * 1.001))
        assert "stats" in failing()
