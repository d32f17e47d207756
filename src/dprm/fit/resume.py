"""Going on with a fit: only with the very same one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def check_same_fit(path: Path, found: Mapping[str, Any], notes: Mapping[str, str]) -> None:
    """Refuse a file that was left by another fit.

    Args:
        found: what the file says of its fit, and perhaps more.
        notes: host, estimator, problems and setting of this fit.
    """
    if {name: found.get(name) for name in notes} != dict(notes):
        raise ValueError(f"{path} is of another fit ({dict(found)}): choose another policy file or delete it")
