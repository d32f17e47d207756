"""One process of the reduction test: `python -m tests.order.reduce_worker RANK WORLD RENDEZVOUS FOLDER`."""

import sys

import pytest
import torch
import torch.distributed as dist

import dprm


def events(seed: int, count: int = 300, cells: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Random events: cell and reward."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, cells, (count,), generator=generator), torch.rand(count, generator=generator)


def main(rank: int, world: int, rendezvous: str, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    cell, reward = events(6)
    stats = dprm.Stats(cells=12, beta=3.0)
    stats.add(cell[rank::world], reward[rank::world])
    stats.all_reduce()
    stats.save(f"{folder}/{rank}.stats")
    with pytest.raises(ValueError, match="disagree on the schema"):
        dprm.Stats(cells=12 + rank, beta=1.0).all_reduce()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
