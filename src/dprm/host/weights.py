"""The committed weights of the small hosts: which files there are, and that they are the right ones.

`weights/manifest.json` at the root of the repository holds for every file its checksum, its size, the command that
makes it and the numbers it reached. An installed wheel has a copy. The folder can be elsewhere: set DPRM_WEIGHTS.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from dprm.order.files import write_whole


class WeightsError(ValueError):
    """Weights that are missing or damaged; the message says how to get them."""


def folder() -> Path:
    """Where weights live."""
    return Path(os.environ.get("DPRM_WEIGHTS", shipped("weights")))


def shipped(name: str) -> Path:
    """A folder that comes with the package: of the checkout, or where an installed wheel has it."""
    checkout = Path(__file__).parents[3] / name
    return checkout if checkout.is_dir() else Path(sys.prefix) / "share" / "dprm" / name


def manifest() -> dict[str, dict[str, Any]]:
    """What should be there: file name → sha256, bytes, command, metrics."""
    path = folder() / "manifest.json"
    if not path.is_file():
        return {}
    try:
        listed: dict[str, dict[str, Any]] = json.loads(path.read_text())
        for name, entry in listed.items():
            if Path(name).name != name or not isinstance(entry["sha256"], str) or not isinstance(entry["command"], str):
                raise ValueError(f"{name!r} is not a file of the folder with sha256 and command")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{path} is not a manifest of weights: {error!r}") from error
    return listed


def present(name: str) -> bool:
    """Whether a file is listed and there."""
    return name in manifest() and (folder() / name).is_file()


def checked(name: str, command: str) -> Path:
    """The path of a weights file, after its checksum was compared.

    Args:
        command: what makes the file, for the message.
    """
    path, entry = folder() / name, manifest().get(name)
    if entry is None or not path.is_file():
        raise WeightsError(f"there are no weights {path}; make them with: {command}")
    actual = sha256(path)
    if actual != entry["sha256"]:
        raise WeightsError(
            f"{path} is damaged (sha256 {actual[:12]}…, expected {entry['sha256'][:12]}…); "
            f"restore it from the repository, or make it anew with: {command}"
        )
    return path


def record(path: Path, command: str, metrics: dict[str, Any]) -> None:
    """Enter a file of the folder into the manifest."""
    entry = {"sha256": sha256(path), "bytes": path.stat().st_size, "command": command, "metrics": metrics}
    listed = {**manifest(), path.name: entry}
    write_whole(folder() / "manifest.json", (json.dumps(dict(sorted(listed.items())), indent=2) + "\n").encode())


def sha256(path: Path) -> str:
    """Checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
