"""What a kept result belongs to: a word for a host that changes with everything that could change an answer.

Code of the host, weights of its model and its Decoding are in it; rows of a batch and device are not.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.decode.loop import advance, begin
from dprm.host.host import Host

# Numbers taken of every weight matrix: enough to tell two trainings apart, and quick for billions of them.
_SAMPLED = 4096


def word(*parts: object) -> str:
    """A short digest of some values."""
    return hashlib.sha256(json.dumps([spec(part) for part in parts], sort_keys=True).encode()).hexdigest()[:16]


def spec(value: Any) -> Any:
    """Plain data that says what a value is: settings by name, functions by where they are written."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, tuple | list):
        return [spec(part) for part in value]
    if isinstance(value, dict):
        return {str(key): spec(part) for key, part in value.items()}
    if isinstance(value, Tensor):
        return [str(value.dtype), list(value.shape), hashlib.sha256(_bytes(value)).hexdigest()]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__qualname__, {f.name: spec(getattr(value, f.name)) for f in fields(value)}]
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value)


def host_word(host: Host) -> str:
    """What identifies a host: name, code, model and decoding."""
    return word(host.name, code_word(host), model_word(host), host.decoding)


def code_word(host: Host) -> str:
    """A digest of the source files that the host is written in; empty for code without a file."""
    files: set[Path] = set()
    for value in (type(host), *vars(host).values()):
        for each in type.mro(value) if isinstance(value, type) else [value]:
            file = _file(each) if inspect.isclass(each) or inspect.isfunction(each) else None
            if file is not None:
                files |= set(file.parent.glob("*.py")) if file.parent.parent.name == "hosts" else {file}
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16] if files else ""


def _file(written: Callable[..., Any] | type) -> Path | None:
    """The file of a class or function outside of this room and of the standard library."""
    if written in (Host, object) or written.__module__ in ("builtins", "abc", "dprm.host.made"):
        return None
    try:
        file = Path(inspect.getfile(written))
    except (TypeError, OSError):
        return None
    return file if file.is_file() else None


@torch.no_grad()
def model_word(host: Host) -> str:
    """A digest of the model: its declared one, that of its weights, or of what it answers to a problem."""
    if host.weights:
        return host.weights
    model = host.model()
    if isinstance(model, torch.nn.Module):
        digest = hashlib.sha256()
        for name, weight in model.state_dict().items():
            step = max(1, weight.numel() // _SAMPLED)
            digest.update(f"{name} {tuple(weight.shape)}".encode() + _bytes(weight.flatten()[::step]))
        return digest.hexdigest()[:16]
    problems = host.problems("fit", 1)
    state = begin(problems.canvas, host.decoding, context=problems.context)
    seen: list[Tensor] = []
    advance(model, state, host.decoding.order(), host.decoding, until=1, on_step=lambda step: seen.extend(_four(step)))
    return word(*seen)


def _four(step: Any) -> list[Tensor]:
    """What a model shows of a canvas, rounded so that the last bits do not matter."""
    reading = step.reading
    return [reading.tokens, *((column * 4096).round() for column in (reading.confidence, reading.entropy))]


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
