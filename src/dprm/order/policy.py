"""A Policy: everything a decoder needs to act, frozen, in one file with a readable header.

What it holds is fixed once made; its digest names it in result cards and logs. A file that does not fit is refused with
a message that says what differs and why that matters.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dprm.order.cells import Cells, Gate
from dprm.order.checks import check_count, check_number
from dprm.order.files import read_tensors, write_tensors
from dprm.order.head import Head
from dprm.order.stats import Stats, checked_range
from dprm.order.values import Table

SCHEMA = 2
# What was called a policy before is read as well.
_READ = (1, 2)
_KIND = "dprm.policy"
_PLAIN = ("beta", "guidance", "signal", "warm_signal", "baseline", "step", "rule", "shrunken", "forget", "notes")
# Notes that say how to act: what a policy without values of its own asks of every prompt.
_ACTING = ("local",)
# Cells that a file may name without holding a number for each, as a head does.
_MOST_WITHOUT = 1 << 20
_HEADER = (*_PLAIN, "values", "cells", "tables", "reward_range", "gate", "shortlist")


class PolicyError(ValueError):
    """A policy that cannot be used here; the message says what does not fit."""


@dataclass(frozen=True, eq=False)
class Policy:
    """Frozen values and the setting they are valid in.

    Attributes:
        table: R̂ and its support, cell by cell.
        cells: the grid of the table.
        beta, guidance: the tilt is guidance · β · R̂.
        signal: name and settings of the host signal the values correct.
        baseline: what the values are relative to: none, global or prompt.
        reward_range: declared range of the terminal reward.
        gate: (T_warm, T_switch, N_ready).
        step: schedule index u reached when the policy was made; the gate's ramp starts from it.
        rule, shortlist: how positions are selected, and (least, most, per m) of the shortlist.
        warm_signal: the same of the signal before T_warm; None where it is no other.
        shrunken: the values were shrunk towards parent cells. forget: share forgotten at each observation.
        stats: the evidence, if learning is to go on from here.
        head: a fitted head whose values take the place of the table's; the table is then empty.
        notes: free text for people: host, estimator, splits.
    """

    table: Table
    cells: Cells
    beta: float
    guidance: float
    signal: dict[str, Any]
    baseline: str
    reward_range: tuple[float, float]
    gate: Gate
    step: int
    rule: str
    shortlist: tuple[int, int, int]
    shrunken: bool = False
    forget: float = 0.0
    stats: Stats | None = None
    head: Head | None = None
    warm_signal: dict[str, Any] | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, column in (("value", self.table.value), ("support", self.table.support)):
            if tuple(column.shape) != (self.cells.count,):
                raise PolicyError(f"table.{name} has shape {tuple(column.shape)}: expected ({self.cells.count},)")
            if not bool(torch.isfinite(column).all()):
                raise PolicyError(f"table.{name} holds NaN or infinite numbers")
        checked_range(self.reward_range)
        self._check_settings()

    def _check_settings(self) -> None:
        """Raise where a field is not of its kind; whether a signal or a rule of that name exists is the Order's."""
        check_number("beta", self.beta, 0, open_low=True)
        check_number("guidance", self.guidance, 0)
        check_number("step", self.step, 0)
        check_number("forget", self.forget, 0, 1)
        for index, number in enumerate(self.shortlist):
            check_count(f"shortlist[{index}]", number, 1)
        warm = self.signal if self.warm_signal is None else self.warm_signal
        for name, spec in (("signal", self.signal), ("warm_signal", warm)):
            if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
                raise PolicyError(f"{name} is {spec!r}: expected settings with a name")
        for name in ("rule", "baseline"):
            if not isinstance(getattr(self, name), str):
                raise PolicyError(f"{name} is {getattr(self, name)!r}: expected a name")
        if not isinstance(self.notes, dict) or not all(isinstance(text, str) for text in self.notes.values()):
            raise PolicyError(f"notes is {str(self.notes)[:80]}: expected text by name")

    @property
    def header(self) -> dict[str, Any]:
        """Everything but the tensors, as stored."""
        return {
            "kind": _KIND,
            "schema": SCHEMA,
            "values": "table" if self.head is None else "head",
            "cells": list(self.cells.shape),
            "tables": self.cells.tables,
            "beta": self.beta,
            "guidance": self.guidance,
            "signal": self.signal,
            "warm_signal": self.warm_signal,
            "baseline": self.baseline,
            "reward_range": list(self.reward_range),
            "gate": [self.gate.warm, self.gate.switch, self.gate.ready],
            "step": self.step,
            "rule": self.rule,
            "shortlist": list(self.shortlist),
            "shrunken": self.shrunken,
            "forget": self.forget,
            "notes": self.notes,
            **({} if self.head is None else {"head": self.head.to_dict()}),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all but the notes for people: two policies that act alike in every way have the same."""
        acting = {name: self.notes[name] for name in _ACTING if name in self.notes}
        return _digest({**self.header, "notes": acting}, self._tensors())

    def _tensors(self) -> dict[str, Tensor]:
        if self.head is not None:
            counts = {} if self.head.counts is None else {"counts": self.head.counts}
            return {**counts, "weight": self.head.weight.cpu()}
        tensors = {"support": self.table.support, "value": self.table.value}
        return tensors if self.stats is None else {"moments": self.stats.moments, **tensors}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all."""
        checksum = _digest(self.header, self._tensors())
        write_tensors(path, self._tensors(), {**self.header, "digest": self.digest, "checksum": checksum})

    @classmethod
    def load(cls, path: str | os.PathLike[str], **expected: Any) -> Policy:
        """Read a policy; `expected` fields (see `expect`) must fit.

        Raises:
            PolicyError: unreadable, truncated, tampered with, of a newer schema, or other than expected.
        """
        try:
            tensors, header = read_tensors(path, _KIND)
        except ValueError as error:
            raise PolicyError(str(error)) from error
        if header.get("schema") not in _READ:
            raise PolicyError(
                f"{path} has schema {header.get('schema')!r}; this version of dprm reads up to {SCHEMA}: upgrade dprm"
            )
        header.pop("digest", None)
        checksum = header.pop("checksum", None)
        if checksum != _digest(header, tensors):
            remedy = "it was damaged or edited; fetch or fit it again"
            raise PolicyError(f"{path} does not match its own checksum: {remedy}")
        if header["schema"] == 1:
            try:
                header, tensors = _from_first_schema(path, header, tensors)
            except PolicyError:
                raise
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise PolicyError(f"{path} does not say what a policy says: {error}") from error
        missing = [name for name in _HEADER if name not in header]
        if missing:
            raise PolicyError(f"{path} lacks {', '.join(missing)}: it was written by another version; fit it again")
        if header["values"] not in ("table", "head"):
            raise PolicyError(f"{path} holds values of kind {header['values']!r}, which this version does not know")
        try:
            policy = cls._of(path, header, tensors)
        except PolicyError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise PolicyError(f"{path} does not say what a policy says: {error}") from error
        policy.expect(**expected)
        return policy

    @classmethod
    def _of(cls, path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, Tensor]) -> Policy:
        """The policy of a header that has everything, and of tensors that may not fit it."""
        phases, bins, aux = header["cells"]
        cells = Cells(phases, bins, aux, header["tables"])
        # Memory is taken for cells that are there, not for as many as a header may name.
        columns = {name: len(tensor) for name, tensor in tensors.items() if name != "weight"}
        if cells.count > _MOST_WITHOUT and any(count != cells.count for count in columns.values() or [0]):
            raise PolicyError(f"{path} names {cells.count:,} cells, and holds {columns or 'none'}")
        low, high = header["reward_range"]
        reward_range = (low, high)
        stats = None
        if "moments" in tensors:
            stats = evidence(cells, header["beta"], reward_range, header["baseline"])
            stats.restore(tensors["moments"])
        head, table = None, None
        if header["values"] == "head":
            try:
                head = Head(tensors["weight"], **header["head"], counts=tensors.get("counts"))
            except (ValueError, TypeError, KeyError) as error:
                remedy = "a head that this version does not know: it was written by another one; fit it again"
                raise PolicyError(f"{path} holds {remedy}") from error
            table = support_of(head, cells)
        return cls(
            table=table or Table(tensors["value"], tensors["support"]),
            cells=cells,
            reward_range=reward_range,
            gate=Gate(*header["gate"]),
            shortlist=(header["shortlist"][0], header["shortlist"][1], header["shortlist"][2]),
            stats=stats,
            head=head,
            **{name: header[name] for name in _PLAIN},
        )

    def expect(self, **expected: Any) -> None:
        """Raise PolicyError unless every named header field, or note, is what the caller is about to use.

        For example `policy.expect(beta=1.0, signal="confidence", cells=(8, 16, 1))`, or `policy.expect(model=digest)`.
        """
        header = {**self.notes, **self.header}
        for name, want in expected.items():
            if name not in header:
                raise TypeError(f"a policy has no field {name!r}; this one has {', '.join(header)}")
            have = header[name]
            if name == "signal" and isinstance(want, str):
                have = have["name"]
            want = list(want.shape) if isinstance(want, Cells) else list(want) if isinstance(want, tuple) else want
            if have != want:
                raise PolicyError(
                    f"this policy was fitted with {name} = {have!r}, not {want!r}: its values mean nothing there; "
                    f"use it as it was fitted, or fit again"
                )


def support_of(head: Head, cells: Cells) -> Table:
    """A table without values, and with the evidence of a head: how often each cell was compared."""
    nothing = torch.zeros(cells.count, dtype=torch.float64)
    if head.counts is None:  # All that is known is how much there was of it.
        return Table(nothing, nothing + head.support)
    if head.counts.shape != nothing.shape:
        raise PolicyError(f"counts has shape {tuple(head.counts.shape)}: expected ({cells.count},), one a cell")
    return Table(nothing, head.counts.double())


def evidence(cells: Cells, beta: float, reward_range: tuple[float, float], baseline: str) -> Stats:
    """Empty Stats for a baseline. Centred rewards lie in [−width, width] whatever the range was."""
    if baseline != "prompt":
        return Stats(cells, beta, reward_range)
    width = reward_range[1] - reward_range[0]
    return Stats(cells, beta, (-width, width), centred=True)


def _digest(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def _from_first_schema(
    path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of schema 1, as they are written now; their meaning is the same.

    Heads were in units of their own, with the spread of the differences that they predict in a note: it is 1 now, so
    that a guidance is in log odds.
    """
    header = {**header, "warm_signal": None, "tables": 1}
    head = header.get("head", {"width": 0})
    if header.pop("proposal", "host") != "host" or head.pop("width", 0):
        raise PolicyError(f"{path} holds a head with a network, which this version does not have: fit it again")
    if "head.linear.weight" in tensors:
        spread = float(header["notes"].get("spread", 1.0))
        header["notes"] = {name: note for name, note in header["notes"].items() if name != "spread"}
        header["guidance"] *= spread
        tensors = {"weight": (tensors["head.linear.weight"].squeeze(0).double() / spread).float()}
    return header, tensors
