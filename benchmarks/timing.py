"""Fair timing: the contestants take turns, so that whatever else the machine does hits all of them alike."""

import statistics
import time
from collections.abc import Callable

Contestants = dict[str, Callable[[], object]]


def medians(contestants: Contestants, repeats: int, warm_up: int = 5) -> dict[str, float]:
    """Median seconds of each, over `repeats` rounds in which every contestant runs once."""
    for _ in range(warm_up):
        for run in contestants.values():
            run()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            began = time.thread_time()
            run()
            seconds[name].append(time.thread_time() - began)
    return {name: statistics.median(times) for name, times in seconds.items()}
