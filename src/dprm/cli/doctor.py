"""`dprm doctor`: whether this installation is whole, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from dprm.cli.terminal import say, say_json, terminal

# Extras, and engines that dprm lives beside.
_BESIDE = ("ray", "transformers", "vllm", "sglang", "diffusers", "accelerate", "triton", "altair", "typer", "rich")
_NEEDED = {"torch": (2, 4), "numpy": (1, 26), "safetensors": (0, 4)}
OK, NOTE, FAILS = "ok", "note", "fails"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: its state, ok, note or fails; what was seen; what to do."""

    name: str
    state: str
    seen: str
    advice: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Look at **this installation**: versions, devices, engines, weights and their checksums, and a self-test.

    The self-test computes on every device, in every way that logits can be read there, what an enumerable chain knows
    exactly: readings, the host's order, learned order, drawn shortlists, a decoding, statistics. The exit code is 1 if
    anything fails; it takes a few seconds.
    """
    import json

    listed = [*_versions(), *_devices(), *_engines(), *_weights(), *_self_tests()]
    failed = [each.name for each in listed if each.state == FAILS]
    if as_json:
        say_json(json.dumps({"failed": failed, "findings": [asdict(each) for each in listed]}, indent=2))
    else:
        _show(listed)
        worst = f"{len(failed)} of {len(listed)} fail: {', '.join(failed)}"
        say(worst if failed else f"None of {len(listed)} fails.")
    if failed:
        raise typer.Exit(1)


def _versions() -> Iterator[Finding]:
    import platform
    import sys

    import dprm

    yield Finding("dprm", OK, dprm.__version__)
    new = sys.version_info >= (3, 11)
    yield Finding("python", OK if new else FAILS, platform.python_version(), "" if new else "use Python 3.11 or newer")
    for name, least in _NEEDED.items():
        version = _version(name) or "missing"
        numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdecimal())
        wanted = ".".join(map(str, least))
        whole = numbers >= least
        yield Finding(name, OK if whole else FAILS, version, "" if whole else f'pip install "{name}>={wanted}"')


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def devices() -> list[str]:
    """Where tensors can live here: the self-test runs on every one."""
    import torch

    there = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    return [*there, *(["mps"] if torch.backends.mps.is_available() else [])]


def backends(device: str) -> list[str]:
    """How logits can be read there."""
    import torch

    from dprm.order.reading import by_kernel

    try:
        by_kernel(torch.empty(0, device=device), "triton")
    except ValueError:
        return ["torch"]
    return ["torch", "triton"]


def _devices() -> Iterator[Finding]:
    import torch

    from dprm.data.cores import cores

    yield Finding("cpu", OK, f"{cores()} cores, {torch.get_num_threads()} threads")
    for device in devices()[1:]:
        seen = torch.cuda.get_device_name(device) if device.startswith("cuda") else "Apple GPU"
        yield Finding(device, OK, seen)
    if len(devices()) == 1:
        yield Finding("gpu", NOTE, "none", "decoding small hosts is fine on a CPU; training them is not")


def _engines() -> Iterator[Finding]:
    there = {name: version for name in _BESIDE if (version := _version(name))}
    yield Finding("beside dprm", OK, ", ".join(f"{name} {version}" for name, version in there.items()) or "nothing")


def _weights() -> Iterator[Finding]:
    from dprm.host import weights
    from dprm.hosts import ENTRIES

    try:
        for name, entry in weights.manifest().items():
            path = weights.folder() / name
            there = path.is_file()
            whole = there and weights.sha256(path) == entry["sha256"]
            advice = "" if whole else f"restore {path}, or make it anew with: {entry['command']}"
            state = OK if whole else FAILS if there else NOTE
            yield Finding(name, state, "checksum holds" if whole else "damaged" if there else "missing", advice)
    except ValueError as error:
        yield Finding("weights", FAILS, str(error), f"restore {weights.folder()} from the repository")
        return
    for host in ENTRIES.values():
        if host.state == "missing":
            yield Finding(host.name, NOTE, "no weights", f"make them with: {host.command}")


def _self_tests() -> Iterator[Finding]:
    import time

    from dprm.theory.selftest import self_test

    remedy = "decode on another device, and report this"
    for device, backend in [(there, way) for there in devices() for way in backends(there)]:
        name, began = f"self-test on {device}, {backend}", time.perf_counter()
        try:
            checks = self_test(device, backend=backend)
        except Exception as error:  # Whatever a device does wrong is to be said.
            yield Finding(name, FAILS, str(error), remedy)
            continue
        wrong = [f"{each.name} is off by {each.off:.2g}, at most {each.limit:g}" for each in checks if not each.holds]
        seen = "; ".join(wrong) or f"{len(checks)} agree with the exact chain, {time.perf_counter() - began:.1f} s"
        advice = f"values computed there are wrong: {remedy}" if wrong else ""
        yield Finding(name, FAILS if wrong else OK, seen, advice)


def _show(listed: list[Finding]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    colour = {OK: "green", NOTE: "yellow", FAILS: "bold red"}
    for each in listed:
        seen = f"{each.seen}\n→ {each.advice}" if each.advice else each.seen
        table.add_row(escape(each.name), f"[{colour[each.state]}]{each.state}[/]", escape(seen))
    terminal().print(table)
