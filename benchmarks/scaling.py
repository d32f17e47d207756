"""What it costs to spread a fit: `python -m benchmarks.scaling` writes results/scale.json and docs/scale.md's table.

Measured on this machine: bytes of what travels, seconds a merge takes, what Ray adds to a piece of work, and what two
workers gain over one, in turns. Extrapolated from that and from published numbers: a fit of an 8B host on 64 GPUs.
With `--check` nothing is measured; the page is compared with the file.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

import dprm
from benchmarks.measured import write_page
from benchmarks.timing import medians
from dprm.data.cores import cores
from dprm.decode import Fixed
from dprm.fit import OnPolicy, fit
from dprm.host.decoded import decoded
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode
from dprm.order import Cells, Stats
from dprm.order.merging import Shards, merged

ROOT = Path(__file__).parent.parent
CARD, PAGE = ROOT / "results" / "scale.json", ROOT / "docs" / "scale.md"

# The fit on paper. Parameters, tokens of a canvas, revealed positions of a rollout, steps of it.
PARAMETERS, CANVAS, REVEALED, STEPS = 8e9, 384, 256, 128
ROLLOUTS, GPUS, ROWS = 1_000_000, 64, 64
# Model calls of a fit that is timed.
_FIT = 4000
# Of an H100: dense bfloat16, as published; and the share of it that a forward pass of such a batch is assumed to reach.
PEAK, SHARE = 989e12, 0.4


class Nothing:
    """A piece without work."""

    def __call__(self, host: Host, model: Any, problems: Problems) -> int:
        return 0


def measure() -> dict[str, float]:
    """What can be measured here."""
    from dprm.contrib.ray import Ray

    load = os.getloadavg()[0]  # Before this adds its own.
    torch.set_num_threads(1)  # As every worker: one core.
    host = dprm.hosts.load("puma").at("22-25").with_decoding(count=Fixed(12))
    problems = host.problems("select", 96)
    rollout = decoded(host, problems[:8], {"": Decode()}, rows=8)[""]
    each = sum(column.nbytes for column in rollout.tensors().values()) / rollout.tokens.numel()
    shards = [_shard(number) for number in range(1000)]
    began = time.perf_counter()
    merged(shards)
    merging = (time.perf_counter() - began) / len(shards)
    one, two = Ray(1, cpus=0.25), Ray(2, cpus=0.25)
    pieces = [(Nothing(), problems[row : row + 1]) for row in range(len(problems))]
    answer = {"": Decode()}
    runs = {
        "one": lambda: decoded(host, problems, answer, rows=8, on=one),
        "two": lambda: decoded(host, problems, answer, rows=8, on=two),
        "here": lambda: decoded(host, problems, answer, rows=8),
    }
    for run in runs.values():
        run()
    # Others do the work: the clock on the wall, not that of this thread.
    seconds = medians(runs, repeats=3, warm_up=0, clock=time.perf_counter)
    # Of another host: puzzles are made one after the other by the driver, where others read theirs from a file.
    words = dprm.hosts.load("puma_words").with_decoding(count=Fixed(8))
    fits = {
        "one": lambda: fit(OnPolicy(), words, calls=_FIT, rows=8, on=one),
        "two": lambda: fit(OnPolicy(), words, calls=_FIT, rows=8, on=two),
    }
    for run in fits.values():
        run()  # The workers make that host.
    fitting = medians(fits, repeats=3, warm_up=0, clock=time.perf_counter)
    nothing = {"ray": lambda: list(one.each(host, pieces))}
    empty = medians(nothing, repeats=5, warm_up=1, clock=time.perf_counter)["ray"] / len(pieces)
    one.close()
    two.close()
    return {
        "cores": cores(),
        "load": load,
        "bytes a rollout and position": each,
        "bytes a decision": 16.0,  # Row and cell, int64 each, as a fit on policy receives them.
        "bytes of a shard": float(Stats(Cells()).moments.nbytes),
        "seconds to merge a shard": merging,
        "seconds Ray adds to a piece": empty,
        "seconds of a piece": seconds["here"] / 12,
        "two workers to one": seconds["one"] / seconds["two"],
        "two workers to one, a fit": fitting["one"] / fitting["two"],
        "one worker to this process": seconds["here"] / seconds["one"],
    }


def _shard(number: int) -> Shards:
    stats = Stats(Cells())
    generator = torch.Generator().manual_seed(number)
    stats.add(torch.randint(128, (512,), generator=generator), torch.rand(512, generator=generator))
    return Shards.of(str(number), stats)


def extrapolated(measured: dict[str, float]) -> dict[str, float]:
    """The fit on paper."""
    calls = ROLLOUTS * STEPS
    flops = 2 * PARAMETERS * CANVAS * calls
    hours = flops / (PEAK * SHARE * GPUS) / 3600
    pieces = ROLLOUTS / ROWS
    return {
        "model calls, a canvas each": calls,
        "floating-point operations": flops,
        "hours on 64 GPUs": hours,
        "pieces": pieces,
        "hours that Ray adds to each worker": pieces * measured["seconds Ray adds to a piece"] / GPUS / 3600,
        "seconds to merge all pieces": pieces * measured["seconds to merge a shard"],
        "gigabytes of decisions to the driver": ROLLOUTS * REVEALED * measured["bytes a decision"] / 1e9,
        "gigabytes as shards": pieces * measured["bytes of a shard"] / 1e9,
    }


if __name__ == "__main__":
    sys.exit(write_page(CARD, PAGE, "scale", measure, extrapolated))
