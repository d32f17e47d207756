"""`Order.select` against its floor, a masked `torch.topk` alone.

CPU, one thread, 50 % of positions masked, 8 phases × 16 bins, m = 3, every cell with evidence. A decoder never asks
twice about the same numbers, and a processor that is asked twice predicts their comparisons, which helps the floor
most. So inputs take turns; a second set of lines, "same input", asks about one input again and again, for show.
"""

import itertools
from collections.abc import Callable, Sequence

import torch

import dprm
from benchmarks.timing import medians
from dprm.order import Cells, Head, Stats
from dprm.order.features import names
from dprm.order.rules import RULES

SIZES = ((64, 256), (256, 1024))
INPUTS = {"": 8, ", same input": 1}
LIMITS = {"top_m": 2.5, "shortlist_top_m": 4.0, "soft_bon": None, "head": 8.0}

Input = tuple[dprm.Reading, torch.Tensor]


def learned(rule: str) -> dprm.Order:
    """An Order whose every cell has evidence."""
    order = dprm.Order(rule=rule)
    stats = Stats(Cells(*order.cells.shape), order.beta)
    generator = torch.Generator().manual_seed(0)
    cell = torch.arange(stats.cells.count).repeat(100)
    stats.add(cell, torch.rand(len(cell), generator=generator))
    order.merge(stats)
    return order


def with_head() -> dprm.Order:
    """An Order whose values are those of a head of the usual size."""
    weight = torch.randn(len(names(1, 4)), generator=torch.Generator().manual_seed(0)) * 0.1
    return dprm.Order(signal="odds", head=Head(weight, support=1000))


def over(inputs: Sequence[Input], decide: Callable[..., object], start: int = 0) -> Callable[[], object]:
    """`decide` on one input after the other, from number `start` on."""
    turns = itertools.cycle([*inputs[start:], *inputs[:start]])
    return lambda: decide(*next(turns))


def measure(repeats: int = 100) -> list[dict[str, object]]:
    """One row a size and rule: microseconds, those of the floor, their ratio, the limit on it."""
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    for size, (kind, count) in itertools.product(SIZES, INPUTS.items()):
        generator = torch.Generator().manual_seed(1)
        inputs = [
            (dprm.read(torch.randn(*size, 8, generator=generator) * 3), torch.rand(size, generator=generator) < 0.5)
            for _ in range(count)
        ]

        def floor(reading, candidates):
            return reading.confidence.masked_fill(~candidates, -torch.inf).topk(3)

        def select(order):
            return lambda reading, candidates: order.select(reading, candidates, 3, 0.5, seed=1).mask

        orders = {"host order": dprm.Order()} | {rule: learned(rule) for rule in RULES} | {"head": with_head()}
        runs = {name: select(order) for name, order in orders.items()}
        turns = repeats if size[0] < 100 else max(repeats // 6, 20)
        for name, run in runs.items():
            # Each against the floor alone: a third contestant would leave the floor cold caches, and flatter the rest.
            # Nor does one of the two find the input in the caches because the other has just read it.
            contestants = {"floor": over(inputs, floor), name: over(inputs, run, start=count // 2)}
            seconds = medians(contestants, turns, warm_up=20)
            rows.append(
                {
                    "what": f"select {size[0]}×{size[1]}, {name}{kind}",
                    "microseconds": seconds[name] * 1e6,
                    "floor": seconds["floor"] * 1e6,
                    "ratio": seconds[name] / seconds["floor"],
                    "limit": None if kind else LIMITS.get(name),
                }
            )
    return rows
