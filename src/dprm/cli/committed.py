"""The learned order that comes with a host: which of the committed policies is for a setting, from their commands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprm.host.host import Host

# What a policy is fitted for, among the options of `dprm fit`.
_SETTING = ("difficulty", "width", "preference", "temperature")


def committed_policy(host: Host, said: dict[str, Any]) -> tuple[Path, dict[str, Any]] | None:
    """The committed policy for what was said, and the rest of its setting; None where there is none.

    Of several, that whose setting is nearest to the host's own, then that with the shortest name.

    Args:
        host: with its own settings. said: difficulty, width, preference and temperature; None: not said.
    """
    from dprm.host import weights

    found = []
    for name, entry in weights.manifest().items():
        words = shlex.split(entry["command"])
        if words[:3] != ["dprm", "fit", host.name] or not name.endswith(".dprm") or ".shuffled" in name:
            continue
        options = {key: words[words.index(f"--{key}") + 1] for key in _SETTING if f"--{key}" in words}
        setting = {key: _READ.get(key, str)(text) for key, text in options.items()}
        asks = "montecarlo" in words  # Not to be had for nothing.
        fits = all(setting.get(key) == value for key, value in said.items() if value is not None)
        if fits and not asks and (weights.folder() / name).is_file():
            rest = {key: value for key, value in setting.items() if said.get(key) is None}
            changes = sum(not _is_own(host, key, value) for key, value in rest.items())
            found.append((changes, len(name), name, rest))
    if not found:
        return None
    _, _, name, rest = min(found, key=lambda each: each[:3])
    return weights.folder() / name, rest


_READ: dict[str, Any] = {"width": int, "temperature": float}


def _is_own(host: Host, key: str, value: Any) -> bool:
    """Whether a setting is the host's own."""
    if key == "preference":
        return host.preferences.get(value) == host.preference
    own = {
        "difficulty": host.variant,
        "width": host.decoding.words()["count"],
        "temperature": host.decoding.temperature,
    }
    return bool(own[key] == (str(value) if key == "width" else value))
