"""Decode problems in several ways, and nothing else: finished batches are kept, judged answers are returned.

What is kept belongs to a host, to problems, to a way and to a seed; change anything that could change an answer and it
is decoded anew. Rows a batch and device may change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from dprm.host.host import Host, Problems
from dprm.host.identity import host_word, word
from dprm.host.rollout import Rollout, Way
from dprm.order.files import claim, read_tensors, write_tensors

_KIND = "dprm.rollout"
# Seconds of work that a kill may cost.
_SAVED_EVERY = 2.0


def decoded(
    host: Host,
    problems: Problems,
    ways: Mapping[str, Way],
    *,
    seed: int = 0,
    rows: int = 64,
    folder: Path | None = None,
    on_batch: Callable[[str, int], None] | None = None,
) -> dict[str, Rollout]:
    """The answers to all problems, in every way.

    Args:
        rows: problems decoded together. folder: where finished batches are kept; None keeps none.
        on_batch: called with (name of the way, problems done).
    """
    if not len(problems):
        raise ValueError("problems is empty: there is nothing to decode")
    problems.check()
    if folder is not None:
        claim(folder)
    owner = None if folder is None else word(host_word(host), host.preference, problems.key)
    rollouts = {}
    for name, way in ways.items():
        plain = re.sub(r"[^\w ,.=@-]", "_", name)
        identity = word(owner, way.spec(), seed)
        file = None if folder is None else folder / f"{plain}-{identity}.rollout"
        rollouts[name] = _answered(host, problems, way, seed, rows, file, identity, name, on_batch)
    return rollouts


def _answered(
    host: Host,
    problems: Problems,
    way: Way,
    seed: int,
    rows: int,
    file: Path | None,
    identity: str,
    name: str,
    on_batch: Callable[[str, int], None] | None,
) -> Rollout:
    parts = [] if file is None else _read(file, identity)
    done = sum(map(len, parts))
    saved = time.monotonic()
    model = host.model()
    while done < len(problems):
        batch = problems[done : done + rows]
        parts.append(way.answer(host, batch, seed, model))
        done += len(batch)
        if file is not None and (done == len(problems) or time.monotonic() - saved > _SAVED_EVERY):
            parts = [Rollout.joined(parts)]
            write_tensors(file, parts[0].tensors(), {"kind": _KIND, "of": identity})
            saved = time.monotonic()
        if on_batch is not None:
            on_batch(name, done)
    return Rollout.joined(parts)


def _read(file: Path, identity: str) -> list[Rollout]:
    if not file.is_file():
        return []
    tensors, header = read_tensors(file, _KIND)
    return [Rollout.from_tensors(tensors)] if header["of"] == identity else []
