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


class Decisions:
    """Decisions to credit: of every row one, in a cell."""

    def __init__(self, cell: torch.Tensor):
        self.rows, self.cell = len(cell), cell

    def events(self) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.arange(self.rows), self.cell


def observed(order: dprm.Order, turn: int, rank: int, world: int) -> None:
    """What a process observes in a turn: its share of 64 rows in 16 groups; in turn 1 the first observes nothing."""
    cell, reward = events(turn, 64, order.cells.count)
    mine = slice(64 * rank // world, 64 * (rank + 1) // world)
    if turn != 1 or rank:
        order.observe(Decisions(cell[mine]), reward[mine], (torch.arange(64) // 4)[mine])


def learner() -> dprm.Order:
    return dprm.Order(phases=3, bins=4, beta=3.0)


def main(rank: int, world: int, rendezvous: str, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    cell, reward = events(6)
    stats = dprm.Stats(cells=12, beta=3.0)
    stats.add(cell[rank::world], reward[rank::world])
    stats.all_reduce()
    stats.save(f"{folder}/{rank}.stats")
    order = learner()
    for turn in range(3):
        observed(order, turn, rank, world)
        order.sync()
        order.sync()
    order.policy().save(f"{folder}/{rank}.dprm")
    if world > 1:
        with pytest.raises(ValueError, match="disagree on the schema"):
            dprm.Stats(cells=12 + rank, beta=1.0).all_reduce()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
