"""A trained model as the denoiser of `dprm.decode`, and its weights as a small file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dprm.train import checkpoint
from dprm.train.transformer import Config, Transformer


class Denoiser:
    """Tokens [B,L] → logits [B,L,V] without gradients, in bfloat16 inside on a GPU.

    Where rows have a context, see `decode.rows`, the model is called with both.
    """

    def __init__(self, model: Transformer):
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self._half = self.device.type == "cuda"
        self.compiled = False

    @property
    def compilable(self) -> bool:
        """Whether what compiles for its device is here."""
        return self.device.type != "cpu" or any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++")))

    def compile(self) -> None:
        """Fuse the model's operations, in bfloat16 inside on a CPU too: three times as fast after the first calls.

        Rounding differs, so that near-ties may be decided otherwise.

        Raises:
            ValueError: on a CPU without a C++ compiler.
        """
        if not self.compilable:
            raise ValueError("a model is compiled on a CPU by g++ or clang++, and neither is here: leave out --compile")
        self._half = self.compiled = True
        self.model.compile(dynamic=True)

    @torch.no_grad()
    def __call__(self, tokens: Tensor, *context: Any) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
            logits: Tensor = self.model(tokens, *context)
            return logits


def save_weights(path: Path, model: Transformer, facts: dict[str, Any]) -> None:
    """Weights in half precision, with the model's shape and other facts in the header."""
    halves = {name: weight.detach().half() for name, weight in model.named_parameters()}
    checkpoint.save(path, halves, {"model": model.config.to_dict(), **facts})


def _transformer(config: dict[str, Any]) -> Transformer:
    return Transformer(Config(**config))


def load_weights(
    path: Path, device: torch.device | str = "cpu", build: Callable[[dict[str, Any]], Any] = _transformer
) -> tuple[Any, dict[str, Any]]:
    """The model, in float32, and the facts of a file written by `save_weights`.

    Args:
        build: the model of a stored shape.
    """
    tensors, facts = checkpoint.load(path)
    model = build(facts["model"])
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=not model.config.tied)
    return model.to(device).requires_grad_(False).eval(), facts
