"""A full disk, a folder that cannot be written, Ctrl-C, a second process: a message, an exit code, no half work."""

import os
import signal
import sys
import time

import pytest

from dprm.order.files import claim
from dprm.train import checkpoint
from tests.faults.commands import Commands
from tests.faults.test_kills import COMMANDS, results

# Bytes that a file may have; smaller than what each command has to write.
ROOM = {"fit": 1000, "compare": 1000, "train": 4000, "study": 4000, "data": 100_000}


def request_of(index, **more):
    return {"environment": {"DPRM_CACHE": "cache", "PIP_INDEX_URL": index, "no_proxy": "127.0.0.1"}, **more}


def check_failed(name, code, said):
    assert code == 2, said
    assert f"dprm {name}: " in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_and_leaves_nothing_half_written(name, commands, home, index):
    here = home / "here"
    here.mkdir()
    code, said = commands.run(COMMANDS[name], here, **request_of(index, largest=ROOM[name]))
    check_failed(name, code, said)
    assert "File too large" in said  # What the system says of a file that meets its limit.
    left = [path for path in here.rglob("*") if path.is_file()]
    # A download keeps what has come; everything else is whole or not there.
    assert all(path.stat().st_size <= ROOM[name] for path in left)
    assert [path.suffix for path in left if path.suffix == ".part"] == ([".part"] if name == "data" else [])
    code, said = commands.run(COMMANDS[name], here, **request_of(index))
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="rights are given up by a call of Linux")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_cannot_be_written_is_said(name, commands, home, index):
    here = home / "here"
    here.mkdir(mode=0o555)
    code, said = commands.run(COMMANDS[name], here, **request_of(index, plain=True))
    check_failed(name, code, said)
    assert "Permission denied" in said or "cannot be written" in said
    assert not list(here.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compare", "train"])
def test_earlier_results_stay_as_they_were(name, commands, home, index):
    here = home / "here"
    here.mkdir()
    code, said = commands.run(COMMANDS[name], here, **request_of(index))
    assert code == 0, said
    before = results(here)
    other = {"compare": ["--seed", "5"], "train": ["--seed", "5", "--work", "other"]}[name]
    code, said = commands.run([*COMMANDS[name], *other], here, **request_of(index, largest=ROOM[name]))
    check_failed(name, code, said)
    after = results(here)
    assert all(after[file] == before[file] for file in before)


@pytest.mark.slow
@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
def test_a_training_that_is_stopped_has_saved_its_last_step(commands, home, request_to_end):
    here = home / "here"
    here.mkdir()
    long = ["train", "wishes", "--steps", "100000", "--rows", "8", "--limit", "1", "--width", "32"]
    process = commands.start(long, here, seldom=True)
    file = here / "runs" / "wishes-random" / "log.jsonl"
    while not (file.is_file() and file.read_text().count("\n") >= 2):  # A line every hundred steps.
        time.sleep(0.02)
    assert not (file.parent / "checkpoint.safetensors").exists()
    os.kill(process, request_to_end)
    assert commands.end() == 130
    said = commands.said
    assert "dprm train: stopped; what is done is kept" in said
    _, facts = checkpoint.load(file.parent / "checkpoint.safetensors")
    assert facts["step"] >= 200


# What would take long, and a file that is there when it has begun.
LONG = {
    "fit": (["--calls", "400000"], "*.piece"),
    "compare": (["--limit", "100000"], "*.rollout"),
    "train": (["--steps", "100000"], "*.safetensors"),
    "study": (["--limit", "100000"], "*.rollout"),
    "data": ([], "*.part"),
}


@pytest.mark.slow
@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", LONG)
def test_a_command_that_is_stopped_says_so_and_leaves_nothing_half_written(name, request_to_end, commands, home, index):
    here = home / "here"
    here.mkdir()
    options, begun = LONG[name]
    process = commands.start([*COMMANDS[name], *options], here, **request_of(index))
    while not list(here.rglob(begun)):
        time.sleep(0.002)
    os.kill(process, request_to_end)
    assert commands.end() == 130, commands.said
    assert f"dprm {name}: stopped" in commands.said
    assert "Traceback" not in commands.said
    # A download keeps what has come.
    assert name == "data" or not list(here.rglob("*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit", "compare", "train", "study"])
def test_a_second_process_in_a_folder_is_refused_while_the_first_lives(name, commands, home, index):
    here = home / "here"
    here.mkdir()
    long = [*COMMANDS[name], *LONG[name][0]]
    process = commands.start(long, here, **request_of(index))
    second = Commands()
    try:
        while not list(here.rglob(".lock")):
            time.sleep(0.02)
        time.sleep(0.1)
        code, said = second.run(long, here, **request_of(index))
        check_failed(name, code, said)
        assert "is in use by another process" in said
        assert commands.kill(process) == -signal.SIGKILL, commands.said
        # The lock of a dead process is gone with it: this one is refused for nothing but its arguments.
        process = second.start(long, here, **request_of(index))
        time.sleep(0.5)
        assert second.kill(process) == -signal.SIGKILL, second.said
        assert "in use" not in second.said
    finally:
        second.close()


@pytest.mark.slow
def test_a_download_that_another_process_is_at_is_refused(commands, home, index):
    here = home / "here"
    claim(here / "cache" / "thing")
    code, said = commands.run(COMMANDS["data"], here, **request_of(index))
    check_failed("data", code, said)
    assert "is in use by another process" in said
