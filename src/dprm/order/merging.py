"""Shards: evidence that was gathered anywhere, each under a name, counted once however often it is delivered.

A shard is a Stats file that says its name. A merged file lists the shards in it with their digests, so that it can be
merged on: with shards that are new, or with files that hold some of its own.

    S = Σ over distinct names; the same name twice is counted once, and with other contents refused
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dprm.order.files import read_tensors, write_tensors
from dprm.order.order import Order
from dprm.order.policy import Policy
from dprm.order.stats import Stats

# What may differ between two policies whose evidence is merged; the merged one has the guidance of the first.
_FREE = ("guidance", "step", "notes", "rule", "shortlist")


@dataclass(frozen=True)
class Shards:
    """Merged evidence.

    Attributes:
        stats: of all shards together. names: digest of every shard by its name.
    """

    stats: Stats
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, stats: Stats) -> Shards:
        """One shard."""
        if not name:
            raise ValueError("name is empty: a shard needs a name that no other shard of the fit has")
        return cls(stats, {name: digest_of(stats)})

    def __add__(self, other: Shards) -> Shards:
        """Both, each shard once.

        Raises:
            ValueError: other cells, beta or range; one name with two contents; bundles that share only a part of
                their shards, of which nobody can say what to count.
        """
        self.stats.check_same(other.stats)
        shared = self.names.keys() & other.names.keys()
        for name in sorted(shared):
            if self.names[name] != other.names[name]:
                raise ValueError(f"shard {name!r} came with two contents: two workers had one name, or one ran twice")
        if len(shared) == len(other.names):
            return self
        if len(shared) == len(self.names):
            return other
        if shared:
            listed = ", ".join(sorted(shared)[:3])
            raise ValueError(f"two merged files share {len(shared)} shards ({listed}): merge the shards themselves")
        return Shards(self.stats + other.stats, {**self.names, **other.names})

    def save(self, path: str | os.PathLike[str]) -> None:
        """A Stats file, which `Stats.load` reads too."""
        header = {"kind": "dprm.stats", **self.stats.schema, "shards": dict(sorted(self.names.items()))}
        write_tensors(path, {"moments": self.stats.moments}, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Shards:
        """Read a shard or merged shards; a plain Stats file is a shard of the name of its file.

        Raises:
            ValueError: damaged, or its contents are not those that its name stands for.
        """
        stats = Stats.load(path)
        _, header = read_tensors(path, "dprm.stats")
        names = header.get("shards")
        if names is None:
            return cls.of(Path(path).stem, stats)
        if not isinstance(names, dict) or not names or not all(isinstance(value, str) for value in names.values()):
            raise ValueError(f"{path} lists shards {str(names)[:60]!r}: expected names with digests")
        if len(names) == 1 and digest_of(stats) not in names.values():
            raise ValueError(f"{path} holds other evidence than its shard {next(iter(names))!r} had: it was damaged")
        return cls(stats, names)


def digest_of(stats: Stats) -> str:
    """What a shard holds, in a word."""
    words = hashlib.sha256(json.dumps(stats.schema, sort_keys=True).encode())
    words.update(stats.moments.numpy().tobytes())
    return words.hexdigest()[:16]


def merged(shards: Sequence[Shards]) -> Shards:
    """All of them, in whatever order they come."""
    if not shards:
        raise ValueError("shards is empty: there is nothing to merge")
    total = shards[0]
    for shard in shards[1:]:
        total = total + shard
    return total


def merged_policies(policies: Mapping[str, Policy]) -> Policy:
    """One policy of the evidence of several, by name; the settings that may differ are those of the first.

    Raises:
        ValueError: a policy without evidence (a head, or values only), or two that do not mean the same.
    """
    first_name, first = next(iter(policies.items()))
    for name, policy in policies.items():
        if policy.stats is None:
            what = "a head" if policy.head is not None else "values without the evidence they come from"
            raise ValueError(f"{name} holds {what}: only tables with their Stats can be merged")
        for setting, here in _meaning(policy).items():
            there = _meaning(first)[setting]
            if here != there:
                raise ValueError(f"{name} does not belong to {first_name}: {setting} is {here!r}, there {there!r}")
    order, seen = Order.from_policy(first), dict[str, str]()
    for name, policy in policies.items():
        assert policy.stats is not None
        same = seen.setdefault(digest_of(policy.stats), name)
        if same != name:
            raise ValueError(f"{name} has the evidence of {same}, which would count twice")
        if policy is not first:
            order.merge(policy.stats)
    total = order.policy(**first.notes)
    return replace(total, step=max(policy.step for policy in policies.values()), notes=_notes(policies))


def _meaning(policy: Policy) -> dict[str, Any]:
    settings = {name: value for name, value in policy.header.items() if name not in _FREE}
    # Those of the notes that say what it was fitted for.
    fitted_for = ("host", "variant", "count", "temperature", "states", "preference", "model", "code")
    return {**settings, **{f"note {name}": policy.notes.get(name) for name in fitted_for}}


def _notes(policies: Mapping[str, Policy]) -> dict[str, str]:
    """The notes on which all agree, and what was merged."""
    first, *others = (policy.notes for policy in policies.values())
    shared = {name: text for name, text in first.items() if all(notes.get(name) == text for notes in others)}
    return {**shared, "merged": ", ".join(policy.digest[:16] for policy in policies.values())}
