"""Where a model is to run: a device that this machine has."""

from __future__ import annotations

import torch


def checked_device(device: torch.device | str) -> torch.device:
    """The device, if tensors can live there; ValueError says what to choose instead."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError):
        what = "there is no CUDA device here" if str(device).startswith("cuda") else "this machine does not have it"
        raise ValueError(f"device is {str(device)!r}: {what}; expected cpu or cuda") from None
