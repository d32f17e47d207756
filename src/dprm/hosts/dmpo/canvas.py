"""The Countdown canvas: characters, and where they stand.

    position 0 … 17    six slots of three characters for the numbers, largest first, right-aligned, unused ones blank
    position 18 … 20   the target, right-aligned
    position 21 … 76   the response: steps such as `86+28=114,31-13=18,114-18=96`, then EOT to the end

Numbers are sorted because a problem is a multiset: the model need not learn that their order means nothing.
Shapes: N problems, n numbers, L = 77 positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from dprm.data.characters import digits, pack, spell

CHARACTERS = "0123456789+-*/=,"
BLANK, EOT, MASK = range(len(CHARACTERS), len(CHARACTERS) + 3)
VOCABULARY = len(CHARACTERS) + 3

MOST_NUMBERS = 6
SLOT = 3
PROMPT = (MOST_NUMBERS + 1) * SLOT
RESPONSE = 56
LENGTH = PROMPT + RESPONSE

# What the model is told about a position: its place value inside a number or the target, and whose digit it is.
SIDES = (
    (1, 2, 3) * MOST_NUMBERS + (4, 5, 6) + (0,) * RESPONSE,
    tuple(1 + position // SLOT for position in range(PROMPT)) + (0,) * RESPONSE,
)


def write_prompts(numbers: Tensor, target: Tensor) -> Tensor:
    """Prompt tokens [N,21] of numbers [N,n], 0 where there are fewer than n, and targets [N]."""
    ordered = numbers.sort(1, descending=True).values
    unused = torch.zeros(len(numbers), MOST_NUMBERS - numbers.shape[1], dtype=numbers.dtype, device=numbers.device)
    fields = torch.cat([ordered, unused, target.unsqueeze(1)], dim=1)
    digit, shown = digits(fields, SLOT)
    return torch.where(shown & (fields > 0).unsqueeze(-1), digit, BLANK).flatten(1)


def write_responses(steps: Tensor) -> tuple[Tensor, Tensor]:
    """Response tokens of solutions.

    Args:
        steps: [N,S,4] int64: left operand, operator 0 … 3 for + - * /, right operand, result.

    Returns:
        tokens [N,56], filled up with EOT, and fits [N] bool: whether the text fits.
    """
    left, operator, right, result = steps.unbind(-1)
    (left, left_shown), (right, right_shown), (result, result_shown) = (digits(x, 4) for x in (left, right, result))
    operator = operator.unsqueeze(-1) + CHARACTERS.index("+")
    equals, comma = (torch.full_like(operator, CHARACTERS.index(sign)) for sign in "=,")
    always = torch.ones_like(operator, dtype=torch.bool)
    between = always.clone()
    between[:, -1] = False  # No comma after the last step.
    characters = torch.cat([left, operator, right, equals, result, comma], -1).flatten(1)
    kept = torch.cat([left_shown, always, right_shown, always, result_shown, between], -1).flatten(1)
    return pack(characters, kept, RESPONSE, EOT)


def blank_canvases(problems: Iterable[tuple[Sequence[int], int]]) -> Tensor:
    """Canvases [N,77] of (numbers, target) with the whole response masked."""
    listed = list(problems)
    numbers = torch.tensor([[*given, *[0] * (MOST_NUMBERS - len(given))] for given, _ in listed])
    prompts = write_prompts(numbers, torch.tensor([target for _, target in listed]))
    return torch.cat([prompts, torch.full((len(listed), RESPONSE), MASK)], dim=1)


def answer_positions(rows: int, device: torch.device | str = "cpu") -> Tensor:
    """[rows,77] bool: the response."""
    return (torch.arange(LENGTH, device=device) >= PROMPT).expand(rows, LENGTH)


def read_response(tokens: Sequence[int]) -> str:
    """The response of one canvas [77] as text, up to the first EOT; `?` where a token is no character."""
    return spell(tokens[PROMPT:], CHARACTERS, EOT)
