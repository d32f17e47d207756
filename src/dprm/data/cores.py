"""How many processor cores there are to work with."""

import os


def cores() -> int:
    """Those this process may use; where the system does not say, all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
