"""Outcomes: what every answer of a comparison earned, problem by problem; every interval of its card comes from them.

They are kept beside the card, in one compressed file. Shapes: A arms, S decode seeds, N problems, J metrics.
"""

from __future__ import annotations

import io
import zipfile
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
            with numpy.load(path, allow_pickle=False) as packed:
                arms = [str(name) for name in packed["arms"]]
                columns = {name: torch.from_numpy(packed[name]) for name in ("key", "group", "scores", "nfe")}
        except (ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{path} holds no outcomes of a comparison: {error}") from error
        scores, nfe = (dict(zip(arms, columns[name], strict=True)) for name in ("scores", "nfe"))
        return cls(columns["key"], columns["group"], scores, nfe)


def beside(card: Path) -> Path:
    """Where the outcomes of a card are kept: `NAME.json` has `NAME.outcomes.npz`."""
    return card.with_name(card.stem + SUFFIX)
