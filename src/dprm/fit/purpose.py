"""What a policy was fitted for, and whether that is what it is now used for."""

from __future__ import annotations

from collections.abc import Mapping

from dprm.host.host import Host
from dprm.host.identity import code_word, model_word
from dprm.host.metrics import BENEFIT

# Where these differ a policy says nothing; where others do, it was not chosen for what it is used for.
_NEEDED = ("host", "states")


def purpose(host: Host) -> dict[str, str]:
    """For the notes of a policy: host, difficulty, decoding, reward, model and code that it is fitted for."""
    return {
        "host": host.name,
        "variant": host.variant,
        "count": host.decoding.words()["count"],
        "temperature": f"{host.decoding.temperature:g}",
        "states": str(host.decoding.states),
        "preference": str(host.preference) or next(each.name for each in host.judged if each.role == BENEFIT),
        "model": model_word(host),
        "code": code_word(host),
    }


def misfits(notes: Mapping[str, str], host: Host) -> list[str]:
    """How a host differs from what a policy was fitted for, a line each; what old policies do not say is passed over.

    Raises:
        ValueError: the policy says nothing about this host.
    """
    here = purpose(host)
    del here["code"]
    lines = [
        f"{name} is {here[name]!r} here, and the policy was fitted for {notes[name]!r}"
        for name in here
        if name in notes and notes[name] != here[name]
    ]
    for line in lines:
        if line.startswith(_NEEDED):
            raise ValueError(f"{line}: fit one with `dprm fit {host.name}`")
    return lines
