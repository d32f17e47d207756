"""A command that is killed at any moment, again and again, ends in the bits of one that was not."""

import json
import os
import random
import shutil
import signal
import time

import pytest

from tests.faults.commands import TOY

# Of every command. Twenty, DPRM_KILLS=20, take a minute and a half of one core.
KILLS = int(os.environ.get("DPRM_KILLS", "6"))
COMMANDS = {
    "fit": ["fit", TOY, "--calls", "400", "--estimator", "onpolicy,head", "--select", "20", "--guidance", "1"],
    "compare": ["compare", TOY, "--limit", "12", "--rows", "4", "--orders", "random", "--out", "runs/card.json"],
    "train": ["train", "wishes", "--law", "dprm", "--steps", "4", "--rows", "8", "--limit", "2", "--width", "32"],
    "study": ["study", "wishes", "--tiny", "--limit", "2", "--widths", "1"],
    "data": ["data", "wishes"],
}
# Seconds, and the times that follow from them.
MEASURED = ("seconds", "time_ratio", "minutes", "command")


def results(folder):
    """What a command has left, by file: all but the pieces it works with and the times it took."""
    contents = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        if name.endswith((".piece", ".rollout", ".lock", "checkpoint.safetensors")):
            continue
        contents[name] = _untimed(json.loads(file.read_text())) if file.suffix == ".json" else file.read_bytes()
    return contents


def _untimed(data):
    if isinstance(data, dict):
        return {key: _untimed(value) for key, value in data.items() if key not in MEASURED}
    return [_untimed(value) for value in data] if isinstance(data, list) else data


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_kills_at_random_times_end_in_the_same_bits(name, commands, home, index):
    request = {"environment": {"DPRM_CACHE": "cache", "PIP_INDEX_URL": index, "no_proxy": "127.0.0.1"}}
    whole, killed = home / "whole", home / "killed"
    whole.mkdir()
    killed.mkdir()
    began = time.monotonic()
    code, said = commands.run(COMMANDS[name], whole, **request)
    assert code == 0, said
    latest, moments, kills, done = 0.6 * (time.monotonic() - began), random.Random(name), 0, 0
    while kills < KILLS:
        process = commands.start(COMMANDS[name], killed, **request)
        time.sleep(moments.uniform(0, latest))
        code = commands.kill(process)
        if code:
            assert code == -signal.SIGKILL
            kills += 1
        else:  # It came to its end between two kills: once more from the beginning.
            check_same(whole, killed)
            shutil.rmtree(killed)
            killed.mkdir()
            # The machine is faster than it was: kills have to come sooner.
            latest, done = 0.7 * latest, done + 1
            assert done <= 20, "hardly a kill came in time"
    code, said = commands.run(COMMANDS[name], killed, **request)
    assert code == 0, said
    check_same(whole, killed)


def check_same(whole, killed):
    """The same files with the same contents; a kill may leave an unfinished file beside them."""
    expected, actual = results(whole), results(killed)
    assert all(name.endswith(".part") for name in actual.keys() - expected.keys())
    for file in expected:
        assert actual[file] == expected[file], file
