"""What a host adds to a training: the shape of its model, its sequences, and itself around a model, to be judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.host.host import Host, Problems
from dprm.host.weights import sha256
from dprm.train.denoiser import load_weights
from dprm.train.masks import Data
from dprm.train.transformer import Config, Transformer


@dataclass(frozen=True)
class Task:
    """A host's part of a training.

    Attributes:
        config: the model it needs, in its usual size.
        data: (seed, device, work folder) → endless sequences; what takes long to make is kept in the folder.
        wrap: (model, device) → the host with that model.
        build: (config, seed) → the model; a host may bring one of its own, with a config of its own.
        phases: K of the streaming pool.
        start: the weights that a training begins with; None: random ones.
        measured: (host, problems) → what is measured of a trained model besides what it solves, by name.
    """

    config: Config
    data: Callable[[int, torch.device, Path], Data]
    wrap: Callable[[Any, torch.device], Host]
    phases: int = 8
    build: Callable[..., Any] = Transformer
    start: Callable[[], Path] | None = None
    measured: Callable[[Host, Problems], dict[str, float]] | None = None

    def first(self, width: int | None, depth: int | None, seed: int) -> Any:
        """The model before its training."""
        model = self.build(self.shaped(width, depth), seed)
        if self.start is not None and width is None and depth is None:
            model.load_state_dict(load_weights(self.start(), "cpu")[0].state_dict())
        return model

    def shaped(self, width: int | None, depth: int | None) -> Config:
        """The model in another size; heads have 32 dimensions."""
        width, depth = width or self.config.width, depth or self.config.depth
        return replace(self.config, width=width, depth=depth, heads=max(1, width // 32), hidden=3 * width)

    def fill(self, model: Any, path: Path) -> None:
        """Give a model the weights of a file, which must be of its shape."""
        stored, _ = load_weights(path, "cpu", lambda facts: self.build(type(self.config)(**facts)))
        if stored.config != model.config:
            raise ValueError(f"{path} is of another shape than the model that is to begin with it: {stored.config}")
        model.load_state_dict(stored.state_dict())

    def load(self, path: Path, device: torch.device | str = "cpu") -> Host:
        """The host with the model of a weights file."""
        model, _ = load_weights(path, device, lambda facts: self.build(type(self.config)(**facts)))
        host = self.wrap(model, torch.device(device))
        host.weights = sha256(path)[:16]
        return host


def successes(host: Host, scores: Tensor) -> Tensor:
    """[N] bool: answers with the highest value of the host's metric of success; without one, of the reward."""
    for index, metric in enumerate(host.judged):
        if metric.name == host.success:
            return scores[:, index] >= metric.range[1]
    return host.reward(scores) >= host.reward_range[1]
