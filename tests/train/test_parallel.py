"""A training that processes share has the losses of one process with the same global batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dprm.train import checkpoint
from dprm.train.parallel import Processes
from tests.train.test_training import training

ROOT = Path(__file__).parents[2]
# What every process runs; the folder comes from the command line.
SHARED = """
import os
import sys
from pathlib import Path
from dprm.train import parallel
from tests.train.test_training import training
threads = len(os.listdir("/proc/self/task"))
parallel.begin_under_torchrun("cpu")
for argument in sys.argv[2:]:
    law, mark, until = argument.partition(":")
    run = training(Path(sys.argv[1]) / law, law)
    run.run(until=int(until) if mark else None)
    run.save()
parallel.end()
assert len(os.listdir("/proc/self/task")) == threads, "a thread of the group outlives it"
"""


def torchrun(count, folder, *laws):
    script = folder / "shared.py"
    script.write_text(SHARED)
    told = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    ran = subprocess.run(
        [*command, str(script), str(folder), *laws], env=told, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


def studied(folder, *before):
    """A rehearsal of post-training in a folder, by command."""
    folder.mkdir()
    how = ["study", "dmpo", "--tiny", "--steps", "4", "--difficulty", "5", "--widths", "14", "--samples", "2"]
    how += ["--orders", "confidence", "--limit", "2", "--set", "width=14", "--out", "card.json", "--work", "work"]
    told = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *before, "-m", "dprm", *how]
    ran = subprocess.run(command, env=told, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads((folder / "card.json").read_text())


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same(alone, shared):
    first, second = log_of(alone), log_of(shared)
    assert len(first) == len(second)
    for here, there in zip(first, second):
        assert here.keys() == there.keys()
        for name in here:
            assert here[name] == pytest.approx(there[name], rel=1e-4, abs=1e-6), (here, there)
    weights = [checkpoint.load(folder / "checkpoint.safetensors")[0] for folder in (alone, shared)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-3, atol=2e-5, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_processes_has_the_losses_of_one(tmp_path, count):
    laws = ("random", "confidence")
    for law in laws:
        training(tmp_path / "alone" / law, law).run()
    torchrun(count, tmp_path, *laws)
    for law in laws:
        same(tmp_path / "alone" / law, tmp_path / law)


@pytest.mark.slow
def test_processes_go_on_where_one_stopped(tmp_path):
    training(tmp_path / "alone" / "random").run()
    torchrun(1, tmp_path, "random:5")
    torchrun(2, tmp_path, "random")
    same(tmp_path / "alone" / "random", tmp_path / "random")


# Where there are processors only, --multi_gpu says no more than that there are several processes.
LAUNCHERS = {
    "torchrun": ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    "accelerate": ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--mixed_precision", "no"],
}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_study_of_post_training_has_the_losses_of_one_process(tmp_path, launcher):
    """Every arm: the same rollouts, rewards and losses; the first process alone decodes and writes the card."""
    if launcher == "accelerate":
        pytest.importorskip("accelerate")
    alone = studied(tmp_path / "alone")
    shared = studied(tmp_path / "shared", "-m", *LAUNCHERS[launcher])
    arms = [name for name in alone["arms"] if name != "start"]
    assert len(arms) == 4
    for arm in arms:
        logs = [log_of(tmp_path / folder / "work" / arm) for folder in ("alone", "shared")]
        assert len(logs[0]) == len(logs[1]) > 0
        for here, there in zip(*logs):
            assert here == pytest.approx(there, rel=1e-4, abs=1e-6)
        assert alone["arms"][arm]["rewards"] == pytest.approx(shared["arms"][arm]["rewards"])
        assert alone["arms"][arm]["steps"] == shared["arms"][arm]["steps"] == 4


def test_rows_that_cannot_be_shared_are_refused():
    assert Processes(1, 4).rows(12) == slice(3, 6)
    with pytest.raises(ValueError, match="rows is 10: expected a multiple of the 4 processes"):
        Processes(0, 4).rows(10)
