"""Commands that start at once: `python -m tests.faults.commands` has everything loaded, and forks for every line.

A line of standard input is a request, `{"arguments": [...], "folder": …, "output": …}`; the answers are the number of
the process, then how it ended. Loading takes a second or two, which twenty kills of five commands would pay a hundred
times; one thread, so that a fork is whole.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOY = f"{ROOT / 'tests' / 'toy_host.py'}:ToyHost"


class Commands:
    """The process that forks, as a test sees it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.faults.commands"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def start(self, arguments: list[str], folder: Path, **request: Any) -> int:
        """Begin a command in a folder; its output goes to a file beside that. Returns the process."""
        self.output = folder.with_name(f"{folder.name}-{os.urandom(4).hex()}.txt")
        line = json.dumps({"arguments": arguments, "folder": str(folder), "output": str(self.output), **request})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    @property
    def said(self) -> str:
        """What the last command has said so far, on both streams."""
        return self.output.read_text()

    def end(self) -> int:
        """Wait for the command: its exit code, or minus the signal that ended it."""
        return os.waitstatus_to_exitcode(int(self.process.stdout.readline()))

    def kill(self, process: int) -> int:
        """End it at once, if it has not ended by itself; how it ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        return self.end()

    def run(self, arguments: list[str], folder: Path, **request: Any) -> tuple[int, str]:
        """A command from begin to end: exit code and what it said."""
        self.start(arguments, folder, **request)
        return self.end(), self.said

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)


def main() -> None:
    import torch

    # What commands import when they run.
    from dprm.cli import app, progress, train  # noqa: F401
    from dprm.evaluate import arms, compare, learn, ledger, trainings  # noqa: F401
    from dprm.hosts import ENTRIES, Entry
    from tests.faults import wishes

    torch.set_num_threads(1)
    ENTRIES["wishes"] = Entry("wishes", "", "", wishes.__name__, "wishes.safetensors", "", wishes.__name__)
    _save_always()
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if not process:
            _become(request)
            app(request["arguments"])
        print(process, flush=True)
        print(os.waitpid(process, 0)[1], flush=True)


SELDOM = 1e9
_EVERY = [0.0]


def _save_always() -> None:
    """Pieces, batches and checkpoints are written as often as there are any, so that many kills meet a write."""
    from dprm.fit import run
    from dprm.host import decoded
    from dprm.train.recipe import Recipe

    run._SAVED_EVERY = decoded._SAVED_EVERY = 0.0
    checked = Recipe.__post_init__

    def often(recipe: Recipe) -> None:
        checked(recipe)
        object.__setattr__(recipe, "save_every", _EVERY[0])

    Recipe.__post_init__ = often


def _become(request: dict[str, Any]) -> None:
    """In the fork: the folder, the output, and what the request takes away."""
    os.chdir(request["folder"])
    _EVERY[0] = SELDOM if request.get("seldom") else 0.0
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(request.get("environment", {}))
    sys.argv = ["dprm", *request["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "largest" in request:  # Bytes a file may have: the disk is full from there on.
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"],) * 2)
    if "plain" in request:  # The superuser may write anywhere.
        _give_up_rights()


def _give_up_rights() -> None:
    """No capabilities: a folder that its owner may not write to is one that the superuser may not either."""
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none):
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    main()
