"""What a kept result belongs to: a word for a host that changes with everything that could change an answer.

Code and settings of the host, its reward, the weights of its model and its Decoding are in it; rows of a batch, device
and preference are not: scores are kept, and a preference only weighs them.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CellType, CodeType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dprm.decode.loop import Model, Result, advance, begin
from dprm.host.host import SPLITS, Host, Problems
from dprm.host.imports import imported_files
from dprm.host.judging import Judge
from dprm.order.noise import mix_rows

# Numbers taken of every weight matrix: enough to tell two trainings apart, and quick for billions of them.
_SAMPLED = 4096
# Attributes of a host that change no answer, or are looked at by themselves.
_APART = (
    "weights",
    "variant",
    "columns",
    "device",
    "paired",
    "domain",
    "ordered",
    "decoding",
    "preference",
    "_decode_text",
)
# Problems whose answers say what a model is, or a reward, that is known by nothing else.
_PROBED = 4
# A cell of a closure that nothing was put into.
_EMPTY = CellType()
# How far into the objects that a host holds it is looked: they may lead anywhere.
_DEEP = 4
# Packages whose versions are not the host's own code.
_FOREIGN = ("builtins", "abc", "torch", "numpy", "typing", "collections", "functools", "dprm.host", "dprm.decode")


def word(*parts: object) -> str:
    """A short digest of some values."""
    return hashlib.sha256(json.dumps([spec(part) for part in parts], sort_keys=True).encode()).hexdigest()[:16]


def spec(value: Any) -> Any:
    """Plain data that says what a value is: settings by name, functions by their code and what they hold."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, tuple | list):
        return [spec(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(spec(part)) for part in value)
    if isinstance(value, Mapping):
        return {str(key): spec(part) for key, part in value.items()}
    if isinstance(value, Tensor):
        return [str(value.dtype), list(value.shape), hashlib.sha256(_bytes(value)).hexdigest()]
    if isinstance(value, np.ndarray | np.generic):
        return spec(value.tolist())
    if isinstance(value, torch.nn.Module):
        return [type(value).__qualname__, _weights(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__qualname__, {f.name: spec(getattr(value, f.name)) for f in fields(value)}]
    if isinstance(value, type) or inspect.isbuiltin(value):
        return f"{value.__module__}.{value.__qualname__}"
    if inspect.ismethod(value):
        return [type(value.__self__).__qualname__, _function(value.__func__)]
    if inspect.isfunction(value):
        return _function(value)
    if isinstance(value, bytes | complex):
        return repr(value)
    if isinstance(value, CodeType):
        return f"code {word(value.co_code.hex(), value.co_names, value.co_consts)}"
    # Of any other object what it is, and the plain settings it was made with.
    return [type(value).__qualname__, _settings(value)]


def _function(function: Any, depth: int = _DEEP) -> list[Any]:
    """Name, code, and what its defaults and its closure hold; of one that stands in no file, what it reads besides."""
    closed = inspect.getclosurevars(function)
    values = [*closed.nonlocals.values(), *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    read = closed.globals if _file(function) is None else {}
    parts = [_held(part, depth - 1) for part in (*values, *(value for _, value in sorted(read.items())))]
    return [f"{function.__module__}.{function.__qualname__}", spec(function.__code__), parts]


def _held(value: Any, depth: int) -> Any:
    """Numbers by value, functions by their code, objects by their attributes, as far as `depth`."""
    if _plain(value) or isinstance(value, Tensor | np.ndarray | np.generic | torch.nn.Module):
        return spec(value)
    if isinstance(value, os.PathLike):
        return str(value)
    if depth <= 0 or isinstance(value, type | ModuleType | Problems) or inspect.isbuiltin(value) or _foreign(value):
        return f"{type(value).__qualname__} {getattr(value, '__qualname__', '')}"
    if isinstance(value, Mapping):
        return {str(key): _held(part, depth - 1) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_held(part, depth - 1) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_held(part, depth - 1)) for part in value)
    if isinstance(value, functools.partial):
        return [_held(part, depth - 1) for part in (value.func, value.args, value.keywords)]
    if inspect.ismethod(value):
        return [_held(value.__self__, depth - 1), _function(value.__func__, depth)]
    if inspect.isfunction(value):
        return _function(value, depth)
    listed = getattr(value, "__dict__", {})
    return [type(value).__qualname__, {name: _held(part, depth - 1) for name, part in sorted(listed.items())}]


def _foreign(value: Any) -> bool:
    """Whether it is a function of a library, whose version is not the host's own code."""
    return inspect.isfunction(value) and _of_library(value)


def _of_library(written: Any) -> bool:
    return any(f"{written.__module__}.".startswith(f"{package}.") for package in _FOREIGN)


def _settings(value: Any) -> dict[str, Any]:
    """The plain public attributes of an object: numbers, words, and sequences of them."""
    listed = getattr(value, "__dict__", {})
    return {name: spec(part) for name, part in sorted(listed.items()) if not name.startswith("_") and _plain(part)}


def _plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_plain, value))
    return isinstance(value, str | int | float | bool | None)


@torch.no_grad()
def host_word(host: Host) -> str:
    """What identifies a host: name, code, settings, reward, model and decoding."""
    model = host.model()
    listed = {name: part for name, part in sorted(vars(host).items()) if name not in _APART and part is not model}
    settings = {name: _held(part, _DEEP) for name, part in listed.items()}
    return word(host.name, code_word(host), settings, model_word(host), host.decoding, *_judged(host, model))


def _judged(host: Host, model: Model) -> list[Tensor]:
    """What a person's reward says of a few answers, if it always says the same: it may read what no code shows."""
    if not any(isinstance(part, Judge) for part in vars(host).values()):
        return []
    problems, result, _ = _few_answers(host, model)
    tokens = result.tokens.cpu()
    scores = host.scores(problems, tokens)
    return [scores] if torch.equal(scores, host.scores(problems, tokens)) else []


def written_word(host: Host) -> str:
    """What identifies a host as far as can be told without its model: name, code, settings, declared weights."""
    settings = {name: part for name, part in _settings(host).items() if name not in _APART}
    return word(host.name, code_word(host), settings, host.weights)


def code_word(host: Host) -> str:
    """A digest of what the host is written in: its classes, its functions, and the files they stand in."""
    files: set[Path] = set()
    functions = []
    for value in _written(host):
        members = vars(value).values() if isinstance(value, type) else [value]
        members = [getattr(each, "__func__", getattr(each, "fget", each)) for each in members]
        functions += [[value.__qualname__, *_function(each)] for each in members if inspect.isfunction(each)]
        file = _file(value)
        if file is not None:
            files |= set(file.parent.glob("*.py")) if file.parent.parent.name == "hosts" else {file}
    files |= imported_files(files)
    return word([hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)], functions)


def _written(host: Host) -> Iterator[Any]:
    """Classes and functions that a host is made of, outside of this room and of the libraries it runs on."""
    values = [host, *vars(host).values()]
    # What a ready-made part was given: `functools.wraps`, `functools.partial`, a person's reward.
    values += [part for value in values for name in ("__wrapped__", "func") if (part := getattr(value, name, None))]
    for value in values:
        function = value.__func__ if inspect.ismethod(value) else value
        own = function if inspect.isfunction(function) or isinstance(function, type) else type(function)
        for each in own.__mro__ if isinstance(own, type) else [own]:
            if not _of_library(each):
                yield each


def _file(written: Any) -> Path | None:
    try:
        file = Path(inspect.getfile(written))
    except (TypeError, OSError):
        return None
    return file if file.is_file() else None


@torch.no_grad()
def model_word(host: Host) -> str:
    """A digest of the model: its declared one, that of its weights, or of those that it holds and of what it answers to
    a few problems."""
    if host.weights:
        return host.weights
    model = host.model()
    if isinstance(model, torch.nn.Module):
        return _weights(model)
    held = list(_weights_held(model))
    _, result, visited = _few_answers(host, model)
    return word(held, *visited, result.tokens)


def _weights_held(value: Any, depth: int = _DEEP) -> Iterator[str]:
    """Digests of the tensors and models that a model without weights of its own holds, in its attributes or closure."""
    if isinstance(value, torch.nn.Module):
        yield _weights(value)
    elif isinstance(value, Tensor):
        yield hashlib.sha256(f"{tuple(value.shape)}".encode() + _bytes(_evenly(value))).hexdigest()[:16]
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            yield hashlib.sha256(f"{value.dtype} {value.shape}".encode() + value.tobytes()).hexdigest()[:16]
    elif depth > 0 and not isinstance(value, type | ModuleType | Problems):
        for part in _parts(value):
            yield from _weights_held(part, depth - 1)


def _parts(value: Any) -> list[Any]:
    """What an object is made of: entries, arguments, attributes, or what a function has closed over."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if inspect.isfunction(value):
        cells = (cell.cell_contents for cell in value.__closure__ or () if cell != _EMPTY)
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return [part for _, part in sorted(getattr(value, "__dict__", {}).items())]


def _few_answers(host: Host, model: Model) -> tuple[Problems, Result, list[Tensor]]:
    """A few problems, their decoding, and what was seen at every step."""
    problems = _few_problems(host)
    state = begin(problems.canvas, host.decoding, mix_rows(problems.key, 0), problems.context)
    visited: list[Tensor] = []
    # To the end: what models say of the first canvas may be the same.
    result = advance(
        model, state, host.decoding.order(), host.decoding, on_step=lambda step: visited.extend(_seen(step))
    )
    return problems, result, visited


def _few_problems(host: Host) -> Problems:
    """Problems of the first split that has any."""
    for count in (_PROBED, 1):
        for split in ("fit", *SPLITS):
            try:
                return host.problems(split, count)
            except ValueError:
                continue
    raise ValueError(f"host {host.name} has no problem in any of {', '.join(SPLITS)}")


def _seen(step: Any) -> list[Tensor]:
    """What a model shows of a canvas, rounded so that the last bits do not matter."""
    reading = step.reading
    return [reading.tokens, *((column * 4096).round() for column in (reading.confidence, reading.entropy))]


def _weights(model: torch.nn.Module) -> str:
    """A digest of numbers taken evenly of every weight."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(f"{name} {tuple(weight.shape)}".encode() + _bytes(_evenly(weight)))
    return digest.hexdigest()[:16]


def _evenly(weight: Tensor) -> Tensor:
    """Numbers taken evenly of a tensor."""
    return weight.flatten()[:: max(1, weight.numel() // _SAMPLED)]


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
