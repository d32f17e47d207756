"""Running the programs of stories: numbers are drawn stage by stage, each knowing what the quantity v is by then.

So a subtraction never asks for more than there is, and a division always comes out even. What remains to be rejected is
a product that is too large, an odd number to be halved, or a v that is used up. Shapes: N stories, 5 stages.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.data.draws import Draws
from dprm.hosts.puma_words import tables
from dprm.hosts.puma_words.stories import CONSTANTS, OPERATORS
from dprm.hosts.puma_words.words import LARGEST_VALUE

# An opening, three events or asides, a question.
STAGES = 5


def draw_number(law: Tensor, value: Tensor, x: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
    """One number for every story.

    Args:
        law: [N] index into `LAW_NAMES`. value: [N] v. x: [N] the clause's first number, for `below x`.

    Returns:
        number [N], 0 where the clause has none, and possible [N] bool.
    """
    none, below_v, below_x, above_v, divides = (
        law == tables.LAW_NAMES.index(name) for name in ("none", "below v", "below x", "above v", "divides v")
    )
    low, high = tables.FEWEST.to(law.device)[law], tables.MOST.to(law.device)[law]
    low = torch.where(above_v, value + low, low)
    high = torch.where(below_v, value - 1, torch.where(below_x, x - 1, torch.where(above_v, value + 99, high)))
    number = low + draws.below((high - low + 1).clamp(min=1), len(law))
    # A uniform choice among the divisors: the largest of random marks that only they get.
    divisor = torch.arange(2, int(tables.MOST[-1]) + 1, device=law.device)
    mark = torch.where(value.unsqueeze(1) % divisor == 0, draws.bits(len(law), len(divisor)), -1)
    number = torch.where(divides, divisor[mark.argmax(1)], number)
    possible = (low <= high) & (~divides | (mark.amax(1) >= 0))
    return number.masked_fill(none, 0), possible | none


def take_step(step: Tensor, operands: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One step of every story's program.

    Args:
        step: [N,3] (left, operator, right) as in `PROGRAM`. operands: [N,7] what they stand for.

    Returns:
        taken [N,4] (left, operator, right, result); there [N] bool: whether the program has this step; right [N] bool:
        if so, the result is a whole number in 1 … 999.
    """
    left, right = (operands.gather(1, which.unsqueeze(1)).squeeze(1) for which in (step[:, 0], step[:, 2]))
    operator, divisor = step[:, 1], right.clamp(min=1)
    results = torch.stack([left + right, left - right, left * right, left // divisor], 1)
    result = results.gather(1, operator.clamp(min=0).unsqueeze(1)).squeeze(1)
    whole = (operator != OPERATORS.index("/")) | (left % divisor == 0)
    there = operator >= 0
    fine = ~there | (whole & (result >= 1) & (result <= LARGEST_VALUE))
    return torch.stack([left, operator, right, result], 1), there, fine


def run(plans: Tensor, draws: Draws) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw the numbers of stories and run their programs.

    Returns:
        numbers [N,5,2] x and y of every stage; steps [N,10,4] of which made [N,10] bool are there; right [N] bool:
        every value is a whole number in 1 … 999.
    """
    constants = torch.tensor(CONSTANTS, device=plans.device).expand(len(plans), -1)
    program, law = tables.PROGRAM.to(plans.device)[plans], tables.LAW.to(plans.device)[plans]
    value = torch.zeros_like(plans[:, 0])
    right = torch.ones_like(value, dtype=torch.bool)
    numbers, steps, made = [], [], []
    for stage in range(STAGES):
        x, x_possible = draw_number(law[:, stage, 0], value, value, draws)
        y, y_possible = draw_number(law[:, stage, 1], value, x, draws)
        if stage == 0:
            value = x
        known = torch.stack([value, x, y, torch.zeros_like(x)], 1)
        first, has_first, first_right = take_step(program[:, stage, 0], torch.cat([known, constants], 1))
        known[:, 3] = first[:, 3]
        second, has_second, second_right = take_step(program[:, stage, 1], torch.cat([known, constants], 1))
        value = torch.where(has_second, second[:, 3], torch.where(has_first, first[:, 3], value))
        numbers.append(torch.stack([x, y], 1))
        steps += [first, second]
        made += [has_first, has_second]
        right &= x_possible & y_possible & first_right & second_right & (x <= LARGEST_VALUE)
    return torch.stack(numbers, 1), torch.stack(steps, 1), torch.stack(made, 1), right
