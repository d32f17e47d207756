"""Code that a model wrote, run in a process of its own with limits of time, memory, files and processes.

It keeps mistakes away from the fit: endless loops, all of the memory, a changed interpreter. It is no wall against
code that means harm, which has the rights of the user who runs it. In doubt run the whole command in a container.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass

_MEGABYTE = 2**20
# The exit code says that everything ran to the end: code that calls sys.exit(0) half way has passed nothing.
_PASSED = 87
_LIMITS = """
import resource, sys
for name, most in {limits!r}.items():
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most, most) if hard == resource.RLIM_INFINITY else (min(most, hard), hard))
exec(compile(sys.stdin.read(), "<answer>", "exec"), {{"__name__": "__main__"}})
import os
os._exit({passed})
"""


@dataclass(frozen=True)
class Outcome:
    """Whether the code ran to its end, and the last line of what it said where it did not."""

    passed: bool
    said: str = ""


def run_isolated(code: str, seconds: float = 5.0, megabytes: int = 512) -> Outcome:
    """Run code to its end, or to a limit.

    Args:
        seconds: of processor time and of the clock. megabytes: of memory.
    """
    limits = {
        "RLIMIT_CPU": int(seconds) + 1,
        "RLIMIT_AS": megabytes * _MEGABYTE,
        "RLIMIT_FSIZE": _MEGABYTE,
        "RLIMIT_NOFILE": 32,
        "RLIMIT_CORE": 0,
    }
    starter = _LIMITS.format(limits=limits, passed=_PASSED)
    # Files and not pipes: what the code has started could keep a pipe open for ever.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as error:
        given.write(code.encode("utf-8", "replace"))
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", starter],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=error,
            cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return Outcome(False, f"ran longer than {seconds:g} s")
        finally:
            # What the code has started goes with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        error.seek(0)
        lines = error.read().decode(errors="replace").strip().splitlines()
    if process.returncode == _PASSED:
        return Outcome(True)
    return Outcome(False, lines[-1][:200] if lines else f"ended with code {process.returncode}")
