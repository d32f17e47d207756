"""What `import dprm` costs over `import torch`."""

import subprocess
import sys
import time

from benchmarks.timing import medians


def measure(repeats: int = 5) -> list[dict[str, object]]:
    """Seconds of a fresh interpreter that imports each."""

    def run(module):
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    # The module is importable from wherever the benchmark runs; what is measured is a user's first import.
    seconds = medians({"torch": run("torch"), "dprm": run("dprm")}, repeats, warm_up=1, clock=time.perf_counter)
    extra = seconds["dprm"] - seconds["torch"]
    return [
        {"what": "import torch", "microseconds": seconds["torch"] * 1e6, "ratio": 1.0, "limit": None},
        {
            "what": f"import dprm ({extra:+.2f} s over torch, at most +0.30)",
            "microseconds": seconds["dprm"] * 1e6,
            "ratio": seconds["dprm"] / seconds["torch"],
            "limit": 1.0 + 0.3 / seconds["torch"],
        },
    ]
