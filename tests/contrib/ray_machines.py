"""Two machines joined by a cable, which is pulled in the middle of a comparison: prints who did what, as JSON.

A machine is a network, a process table, a name and folders of its own for what Ray shares in memory: the other one is
reached through a pair of virtual devices only. Where the cable is pulled no connection is closed and nobody says
good-bye. Run as `unshare … python -m tests.contrib.ray_machines first FOLDER`, see `test_ray_machines.py`.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.toy_host import ToyHost

UNSHARE = ["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
FIRST, SECOND, ADDRESS = "10.77.0.1", "10.77.0.2", "10.77.0.1:6379"
# Two questions of the cluster that find no answer mean that a machine is dead.
CHECKS = {"period_ms": 1000, "timeout_ms": 1000, "failure_threshold": 2, "initial_delay_ms": 0}
# Seconds that anything may take.
LIMIT = 180
COMMANDS = {
    "fit": ["--estimator", "onpolicy", "--calls", "160", "--rows", "4", "--select", "20", "--out", "toy.dprm"],
    "compare": ["--limit", "120", "--rows", "4", "--orders", "random", "--out", "card.json"],
}


class Watched(ToyHost):
    """Takes its time where it is watched, and writes down which machine it was asked on."""

    def judge(self, problems, tokens):
        if marks := os.environ.get("DPRM_MARKS"):
            (Path(marks) / f"{socket.gethostname()}-{time.monotonic_ns()}").touch()
            time.sleep(0.2)
        return super().judge(problems, tokens)


def command(name: str, folder: Path, *more: str) -> subprocess.Popen:
    """`dprm fit` or `dprm compare` of the host above, begun in a folder."""
    host = f"{Path(__file__).resolve()}:Watched"
    return subprocess.Popen([sys.executable, "-m", "dprm", name, host, *COMMANDS[name], *more], cwd=folder)


def main(folder: Path) -> None:
    """The first machine: head of the cluster, and where the commands are given."""
    marks = folder / "marks"
    marks.mkdir()
    os.environ |= {"DPRM_MARKS": str(marks), "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {f"RAY_health_check_{name}": str(value) for name, value in CHECKS.items()}
    be("first")
    second = subprocess.Popen([*UNSHARE, sys.executable, "-m", __spec__.name, "second", folder], stdin=subprocess.PIPE)
    inside = Path(f"/proc/{second.pid}/task/{second.pid}/children")
    wait(lambda: inside.read_text().strip())
    ip(f"link add one type veth peer name two netns {inside.read_text().strip()}")
    ip(f"addr add {FIRST}/24 dev one")
    ip("link set one up")
    start_ray("--head", "--port=6379", "--include-dashboard=false", f"--node-ip-address={FIRST}")
    second.stdin.close()  # The cable is there, and the head.
    wait((folder / "joined").exists)
    spread = ["--engine", "ray", "--workers", "2", "--address", ADDRESS]
    codes = [command("fit", folder, *spread).wait(LIMIT)]
    fitted = counted(marks)
    comparing = command("compare", folder, *spread)
    wait(lambda: counted(marks)["second"] >= fitted["second"] + 3 or comparing.poll() is not None)
    ip("link set one down")
    pulled, still = counted(marks), comparing.poll() is None
    codes.append(comparing.wait(LIMIT))
    print(json.dumps({"codes": codes, "fitted": fitted, "pulled": pulled, "still": still, "after": counted(marks)}))


def other(folder: Path) -> None:
    """The second machine: its core is the cluster's, until it dies."""
    be("second")
    sys.stdin.read()
    ip(f"addr add {SECOND}/24 dev two")
    ip("link set two up")
    start_ray(f"--address={ADDRESS}", f"--node-ip-address={SECOND}")
    (folder / "joined").touch()
    time.sleep(10 * LIMIT)


def be(name: str) -> None:
    """A machine of this name, with memory and a folder of Ray of its own."""
    subprocess.run(["hostname", name], check=True)
    ip("link set lo up")
    Path("/tmp/ray").mkdir(exist_ok=True)
    for folder in ("/tmp/ray", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "own", folder], check=True)


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


def start_ray(*options: str) -> None:
    ray = Path(sys.executable).with_name("ray")
    small = ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]
    subprocess.run([ray, "start", *small, *options], check=True, stdout=sys.stderr, timeout=LIMIT)


def wait(there) -> None:
    """Until something is there."""
    latest = time.monotonic() + LIMIT
    while not there():
        assert time.monotonic() < latest, "waited too long"
        time.sleep(0.05)


def counted(marks: Path) -> dict[str, int]:
    """How many pieces every machine has done."""
    names = [each.name.partition("-")[0] for each in marks.iterdir()]
    return {name: names.count(name) for name in ("first", "second")}


if __name__ == "__main__":
    {"first": main, "second": other}[sys.argv[1]](Path(sys.argv[2]))
