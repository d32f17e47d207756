"""A fit and a comparison over two machines end in the bits of one process, also where a machine is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dprm

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

from tests.contrib.ray_machines import UNSHARE, command  # noqa: E402

ROOT = Path(__file__).parents[2]
# Whoever is not the superuser is one inside.
SANDBOX = [UNSHARE[0], "--map-root-user", *UNSHARE[1:]]


def missing():
    """What is not here that two machines are made of; an empty text where all is."""
    if absent := [name for name in ("unshare", "ip", "hostname", "mount") if shutil.which(name) is None]:
        return f"no {' and '.join(absent)}: they come with util-linux and iproute2"
    tried = [*SANDBOX, "sh", "-ec", "mount -t tmpfs own /dev/shm; ip link add one type veth peer name two"]
    made = subprocess.run(tried, capture_output=True, text=True, check=False)
    return f"namespaces cannot be made here: {made.stderr.strip()[:80]}" if made.returncode else ""


def test_two_machines_one_of_which_is_lost_end_in_the_bits_of_one_process(tmp_path, monkeypatch):
    if why := missing():
        pytest.skip(why)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    alone.mkdir()
    spread.mkdir()
    assert [command(name, alone).wait(120) for name in ("fit", "compare")] == [0, 0]
    machines = [*SANDBOX, sys.executable, "-m", "tests.contrib.ray_machines", "first", str(spread)]
    done = subprocess.run(machines, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["codes"] == [0, 0], done.stderr[-3000:]
    # Both did a part of the fit, and of the comparison until the second was lost in its middle.
    assert min(said["fitted"].values()) > 0
    assert said["still"]
    assert said["pulled"]["second"] > said["fitted"]["second"]
    assert said["after"]["first"] > said["pulled"]["first"]
    policies = [dprm.Policy.load(folder / "toy.dprm") for folder in (alone, spread)]
    assert policies[0].digest == policies[1].digest
    outcomes = [(folder / "card.outcomes.npz").read_bytes() for folder in (alone, spread)]
    assert outcomes[0] == outcomes[1]
    assert untimed(alone / "card.json") == untimed(spread / "card.json")


def untimed(path):
    """A card without the times it took and the command that made it."""
    card = json.loads(path.read_text())
    del card["command"]
    for arm in card["arms"].values():
        del arm["seconds"], arm["time_ratio"]
    return card
