"""Fair timing: the contestants take turns, so that whatever else the machine does hits all of them alike.

What is measured is the processor time of the thread: a machine that others use too takes turns with them.
"""

import statistics
import time
from collections.abc import Callable

Contestants = dict[str, Callable[[], object]]


def medians(
    contestants: Contestants, repeats: int, warm_up: int = 5, clock: Callable[[], float] = time.thread_time
) -> dict[str, float]:
    """Median seconds of each, over `repeats` rounds in which every contestant runs once."""
    for _ in range(warm_up):
        for run in contestants.values():
            run()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            began = clock()
            run()
            seconds[name].append(clock() - began)
    return {name: statistics.median(times) for name, times in seconds.items()}
