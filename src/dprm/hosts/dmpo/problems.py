"""Countdown problems that have a solution by construction.

Numbers are drawn from 1 … 100 and combined, two at a time, until one value is left: the target. A draw is kept when the
target is in 1 … 100 and every value on the way is a whole number in 1 … 9,999. Everything is vectorised over problems
and hashed from (seed, round), so a seed gives the same problems on every device.

The reference solution writes the larger operand first, and independent first steps with the larger result first: one
spelling of many, so that the model spends nothing on choosing among equals. The verifier accepts all of them.
Shapes: N problems, n numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dprm.data.draws import Draws, row_hash
from dprm.data.splits import in_split
from dprm.data.stock import Stock, collected
from dprm.hosts.dmpo import canvas

LARGEST_NUMBER = 100
LARGEST_TARGET = 100
LARGEST_VALUE = 9_999
# How often + - * / are tried where they are possible. Targets are small, so products rarely survive.
WEIGHTS = (0.3, 0.3, 0.2, 0.2)


class Problems(NamedTuple):
    """numbers [N,6] int64, 0 where unused; target [N] int64; tokens [N,77] uint8, prompt and a reference solution."""

    numbers: Tensor
    target: Tensor
    tokens: Tensor

    def listed(self) -> list[tuple[tuple[int, ...], int]]:
        """(numbers, target) of every problem."""
        rows = zip(self.numbers.tolist(), self.target.tolist())
        return [(tuple(number for number in numbers if number), target) for numbers, target in rows]


def key(numbers: Tensor, target: Tensor) -> Tensor:
    """[N] int64: the same for two spellings of one problem."""
    return row_hash(torch.cat([numbers.sort(1, descending=True).values, target.unsqueeze(1)], dim=1))


def combine(numbers: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
    """Combine the numbers of every problem in random pairs by random operators.

    Args:
        numbers: [N,n] int64.

    Returns:
        steps [N,n−1,4] (left, operator, right, result) and possible [N] bool: no value on the way was 0.
    """
    rows = torch.arange(len(numbers), device=numbers.device)
    values, steps = numbers.clone(), []
    origin = torch.full_like(values, -1)
    weights = torch.tensor(WEIGHTS, device=numbers.device)
    independent = torch.zeros(len(numbers), dtype=torch.bool, device=numbers.device)
    for index, count in enumerate(range(numbers.shape[1], 1, -1)):
        one = draws.below(count, len(numbers))
        two = (one + 1 + draws.below(count - 1, len(numbers))) % count
        keep, drop = torch.minimum(one, two), torch.maximum(one, two)
        a, b = values[rows, keep], values[rows, drop]
        left, right = torch.maximum(a, b), torch.minimum(a, b)
        # Multiplying by 1 and dividing by 1 would be ways to throw a number away.
        divisor = right.clamp(min=1)
        product, large = left * right, right >= 2
        possible = torch.stack(
            [
                left + right <= LARGEST_VALUE,
                left > right,
                large & (product <= LARGEST_VALUE),
                large & (left % divisor == 0),
            ],
            dim=1,
        )
        share = (weights * possible).cumsum(1)
        operator = (draws.uniform(len(numbers)).unsqueeze(1) * share[:, -1:] >= share).sum(1).clamp(max=3)
        results = torch.stack([left + right, left - right, product, left // divisor], dim=1)
        result = results.gather(1, operator.unsqueeze(1)).squeeze(1)
        result = torch.where(possible.any(1), result, 0)
        if index == 1:
            independent = (origin[rows, keep] < 0) & (origin[rows, drop] < 0)
        steps.append(torch.stack([left, operator, right, result], dim=1))
        values[rows, keep], origin[rows, keep] = result, index
        # The last value takes the free place, so that the first count − 1 places hold what is left.
        values[rows, drop], origin[rows, drop] = values[:, count - 1], origin[:, count - 1]
    made = torch.stack(steps, dim=1)
    if made.shape[1] > 1:
        swap = independent & (made[:, 0, 3] < made[:, 1, 3])
        made[:, :2] = torch.where(swap[:, None, None], made[:, :2].flip(1), made[:, :2])
    return made, (made[..., 3] > 0).all(1)


def candidates(count: int, numbers: int, draws: Draws, device: torch.device | str = "cpu") -> Problems:
    """The problems among `count` draws whose solution is admissible and fits the canvas."""
    drawn = draws.below(LARGEST_NUMBER, count, numbers) + 1
    steps, possible = combine(drawn, draws)
    target = steps[:, -1, 3]
    response, fits = canvas.write_responses(steps)
    kept = possible & fits & (target >= 1) & (target <= LARGEST_TARGET)
    drawn, target = drawn[kept], target[kept]
    tokens = torch.cat([canvas.write_prompts(drawn, target), response[kept]], dim=1).to(torch.uint8)
    unused = torch.zeros(len(drawn), canvas.MOST_NUMBERS - numbers, dtype=drawn.dtype, device=device)
    return Problems(torch.cat([drawn, unused], dim=1), target, tokens)


def generate(
    split: str, count: int, numbers: int, seed: int = 0, device: torch.device | str = "cpu", distinct: bool = False
) -> Problems:
    """Exactly `count` problems of a split, each with this many numbers.

    Args:
        numbers: 2 … 6.
        distinct: no problem twice, in any spelling; for evaluation.
    """
    if not 2 <= numbers <= canvas.MOST_NUMBERS:
        raise ValueError(f"numbers is {numbers}: expected 2 … {canvas.MOST_NUMBERS}")
    size = min(1 << 19, max(4096, 16 * count))

    def draw(turn: int) -> Problems:
        made = candidates(size, numbers, Draws("countdown", seed, numbers, turn, device=device), device)
        inside = in_split(key(made.numbers, made.target), split)
        return Problems(*(field[inside] for field in made))

    once = (lambda rows: key(rows[0], rows[1])) if distinct else None
    return Problems(*collected(draw, count, f"{split} with {numbers} numbers", once))


class CountdownData(Stock):
    """Training sequences from a stock of generated problems (see `masks.Data`).

    Args:
        counts: how many problems of each number of numbers, for example {2: 50_000, 3: 1_000_000, 4: 3_000_000}.
        seed: of the problems and of the order in which they come.
    """

    def __init__(self, counts: dict[int, int], seed: int = 0, device: torch.device | str = "cpu", split: str = "train"):
        tokens = torch.cat([generate(split, counts[n], n, seed, device).tokens for n in sorted(counts)])
        super().__init__(tokens, canvas.answer_positions(1)[0], canvas.MASK, seed, device)
