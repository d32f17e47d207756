"""Several processes on one training: each computes the logits of its rows, and all take the same step.

    process p of P:   logits of rows [p·B/P, (p+1)·B/P) with gradients; the other rows' logits from the other processes
    loss              of all B rows, the same number everywhere: any objective, and what a mask law makes of logits
    gradient          Σ_p of what flows through the own rows = that of one process with B rows, but for rounding

The mask law, its lessons and the averaged model are worked out by every process alike; files are written by the first.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """Those that share a training: which one this is, and how many there are."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """The rows of this process."""
        if count % self.count:
            raise ValueError(f"rows is {count}: expected a multiple of the {self.count} processes")
        each = count // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def joined(self, logits: Tensor) -> Tensor:
        """[B,L,V] from this process's rows, which keep their gradient, and those of the others."""
        if self.count == 1:
            return logits
        own = logits.detach().contiguous()
        parts = [torch.empty_like(own) for _ in range(self.count)]
        dist.all_gather(parts, own)
        parts[self.rank] = logits
        return torch.cat(parts)

    def summed(self, weights: Iterable[Tensor]) -> None:
        """Replace every gradient by the sum over all processes."""
        if self.count == 1:
            return
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        whole = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(whole)
        first = 0
        for gradient in gradients:
            gradient.copy_(whole[first : first + gradient.numel()].view_as(gradient))
            first += gradient.numel()

    def wait(self) -> None:
        """Go on when all have come here: what the first has written is there for the others."""
        if self.count > 1:
            dist.barrier()

    def agreed(self, number: int, device: torch.device) -> int:
        """The largest of every process's number: what one is told, as to stop, all do."""
        if self.count == 1:
            return number
        told = torch.tensor([number], device=device)
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
        return int(told)


def processes() -> Processes:
    """Of the process group that there is; one process without any."""
    if dist.is_available() and dist.is_initialized():
        return Processes(dist.get_rank(), dist.get_world_size())
    return Processes()


def begin_under_torchrun(device: str) -> str:
    """Join the processes that torchrun has started, if it has; the device of this one."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or dist.is_initialized():
        return device
    # Its functions have the group of all as a default. Imported later, as an optimizer does, they would hold a group
    # that is destroyed: its threads outlive it, and one that still has a tensor when Python ends aborts the process.
    importlib.import_module("torch.distributed.nn.functional")
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return device


def end() -> None:
    """Leave them."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
