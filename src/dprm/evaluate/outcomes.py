"""Outcomes: what every answer of a comparison earned, problem by problem; every interval of its card comes from them.

They are kept beside the card, in one compressed file. Shapes: A arms, S decode seeds, N problems, J metrics.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from torch import Tensor

from dprm.host.host import Problems
from dprm.host.rollout import Rollout
from dprm.order.files import write_whole

SUFFIX = ".outcomes.npz"
# Bytes of an array that is taken out of a file.
_LARGEST = 1 << 31
_UNREADABLE = (ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of the same problems under several arms.

    Attributes:
        key, group: [N] int64, as in `Problems`.
        scores: by arm, [S,N,J] float32, in the order of the host's judged metrics.
        nfe: by arm, [S,N] int64, model calls of all kinds.
    """

    key: Tensor
    group: Tensor
    scores: dict[str, Tensor]
    nfe: dict[str, Tensor]

    @classmethod
    def of(cls, problems: Problems, rollouts: Mapping[str, Sequence[Rollout]]) -> Outcomes:
        """The outcomes of rollouts of these problems, one rollout a decode seed."""
        return cls(
            problems.key.cpu(),
            problems.groups.cpu(),
            {name: torch.stack([rollout.scores for rollout in seeds]) for name, seeds in rollouts.items()},
            {name: torch.stack([rollout.nfe for rollout in seeds]) for name, seeds in rollouts.items()},
        )

    def save(self, path: Path) -> None:
        """Write one compressed file, whole or not at all."""
        packed = io.BytesIO()
        numpy.savez_compressed(
            packed,
            arms=numpy.array(list(self.scores)),
            key=self.key.numpy(),
            group=self.group.numpy(),
            scores=torch.stack(list(self.scores.values())).numpy(),
            nfe=torch.stack(list(self.nfe.values())).numpy(),
        )
        write_whole(path, packed.getvalue())

    @classmethod
    def load(cls, path: Path) -> Outcomes:
        """Read what `save` wrote; ValueError says what is wrong with any other file."""
        try:
            _check_sizes(path)
            with numpy.load(path, allow_pickle=False) as packed:
                arms = [str(name) for name in packed["arms"]]
                columns = {name: torch.from_numpy(packed[name]) for name in ("key", "group", "scores", "nfe")}
        except (*_UNREADABLE, KeyError, TypeError) as error:
            raise ValueError(f"{path} holds no outcomes of a comparison: {error}") from error
        sizes = {name: len(columns[name]) for name in ("scores", "nfe")}
        if any(size != len(arms) for size in sizes.values()):
            raise ValueError(f"{path} holds no outcomes of a comparison: {len(arms)} arms, and {sizes}")
        scores, nfe = (dict(zip(arms, columns[name], strict=True)) for name in ("scores", "nfe"))
        return cls(columns["key"], columns["group"], scores, nfe)


def _check_sizes(path: Path) -> None:
    """Raise where unpacking would take more memory than outcomes can: by what the archive says, and by its arrays."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.file_size > _LARGEST:
                raise ValueError(f"{entry.filename} unpacks to {entry.file_size:,} bytes: at most {_LARGEST:,}")
            with archive.open(entry) as stream:
                version = numpy.lib.format.read_magic(stream)
                if version != (1, 0):
                    raise ValueError(f"{entry.filename} is of version {version}: expected (1, 0)")
                shape, _, dtype = numpy.lib.format.read_array_header_1_0(stream)
            if math.prod(shape) * dtype.itemsize > entry.file_size:
                raise ValueError(f"{entry.filename} says shape {shape}, more than it holds")


def beside(card: Path) -> Path:
    """Where the outcomes of a card are kept: `NAME.json` has `NAME.outcomes.npz`."""
    return card.with_name(card.stem + SUFFIX)
