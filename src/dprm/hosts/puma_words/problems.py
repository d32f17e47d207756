"""Word problems that have a whole-number solution by construction.

A story is planned (clauses of one theme), its numbers are drawn while its program is run, and it is kept when every
value on the way is a whole number in 1 … 999 and its text fits the canvas. Everything is vectorised over problems and
hashed from (seed, round), so a seed gives the same problems on every device.

The reference answer is the program itself, step by step in the order of the story; the verifier accepts any way.
Shapes: N problems, 5 stages (opening, three events or asides, question), S steps, L = 112 positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.data.characters import digits, pack
from dprm.data.draws import Draws, row_hash
from dprm.data.splits import in_split
from dprm.data.stock import Stock, collected
from dprm.hosts.puma_words import tables, words
from dprm.hosts.puma_words.programs import STAGES, run
from dprm.hosts.puma_words.stories import ASIDE, CONSTANTS, EVENT, HERO, OPENING, OPERANDS, QUESTION

FEWEST_STEPS, MOST_STEPS = 2, 4
# How many of a hundred stories hold a sentence whose number only distracts.
ASIDES = 30


@dataclass(frozen=True)
class WordProblems:
    """N problems.

    Attributes:
        tokens: [N,112] uint8, problem and reference answer.
        answer: [N] int64, the final number.
        numbers: [N,13] int64, the numbers of the text, distractors included, and the constants its words imply; 0 where
            unused.
        steps: [N,S,4] int64: left operand, operator 0 … 3 for + - * /, right operand, result.
        plan: [N,5] int64, the clauses: the template.
    """

    tokens: Tensor
    answer: Tensor
    numbers: Tensor
    steps: Tensor
    plan: Tensor

    def listed(self) -> list[tuple[tuple[int, ...], int]]:
        """(numbers, answer) of every problem, for the verifier."""
        rows = zip(self.numbers.tolist(), self.answer.tolist())
        return [(tuple(number for number in numbers if number), answer) for numbers, answer in rows]

    def __len__(self) -> int:
        return len(self.answer)

    def __getitem__(self, rows: Tensor | slice) -> WordProblems:
        """Some of the problems, by index, mask or slice."""
        return WordProblems(**{name: field[rows] for name, field in vars(self).items()})


def key(steps: Tensor) -> Tensor:
    """[N] int64: a hash of the solution [N,S,4].

    Template and numbers determine the steps, so two problems of different splits differ in template or numbers, and
    moreover in their solution: no test answer was ever seen in training, whatever words it came in.
    """
    return row_hash(steps.flatten(1))


def plan(count: int, steps: int, draws: Draws, device: torch.device | str = "cpu") -> Tensor:
    """[n,5] the clauses of those among `count` random stories that have this many steps and repeat no clause."""
    theme = draws.below(len(tables.CHOICES[0][1]), count)

    def pick(role: int) -> Tensor:
        table, sizes = (tensor.to(device) for tensor in tables.CHOICES[role])
        return table[theme, draws.below(sizes[theme], count)]

    middle = torch.stack([pick(EVENT) for _ in range(STAGES - 2)], 1)
    place = torch.arange(STAGES - 2, device=device)
    middle = middle.masked_fill(place > draws.below(STAGES - 2, count, 1), tables.NOTHING)
    aside = (place == draws.below(STAGES - 2, count, 1)) & (draws.below(100, count, 1) < ASIDES)
    middle = torch.where(aside, pick(ASIDE).unsqueeze(1), middle)
    plans = torch.stack([pick(OPENING), *middle.unbind(1), pick(QUESTION)], 1)
    said = plans.sort(1).values
    repeats = ((said[:, 1:] == said[:, :-1]) & (said[:, 1:] != tables.NOTHING)).any(1)
    return plans[(tables.STEPS.to(device)[plans].sum(1) == steps) & ~repeats]


def write_problems(plans: Tensor, numbers: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
    """Problem tokens [N,64] of stories, filled up with blanks, and fits [N] bool; names and things are drawn here."""
    rows, device = len(plans), plans.device
    filled = {slot: choices.to(device)[draws.below(len(choices), rows)] for slot, choices in tables.SLOT_WORDS.items()}
    things = tables.SLOT_WORDS["{things}"].to(device)
    place = (filled["{things}"].unsqueeze(1) == things).long().argmax(1)
    filled["{others}"] = things[(place + 1 + draws.below(len(things) - 1, rows)) % len(things)]
    woman = draws.below(2, rows)
    for slot, (man, other) in HERO.items():
        filled[slot] = torch.where(woman == 0, filled[man], filled[other])
    for slot, choices in tables.PRONOUN_WORDS.items():
        filled[slot] = choices.to(device)[woman]
    spoken = torch.stack([filled[slot] for slot in tables.WORD_SLOTS], 1)
    left_out = torch.full_like(spoken[:, :1], -1)
    digit, shown = digits(numbers, words.PLACES)
    digit = torch.where(shown, digit, -1).flatten(2)
    codes = tables.CODES.to(device)[plans]
    parts = []
    for stage in range(STAGES):
        fillings = torch.cat([digit[:, stage], spoken, left_out], 1)
        code = codes[:, stage]
        filling = fillings.gather(1, (code - words.VOCABULARY).clamp(min=0))
        parts.append(torch.where(code < words.VOCABULARY, code, filling))
    tokens = torch.cat(parts, 1)
    return pack(tokens.clamp(min=0), tokens >= 0, words.PROMPT, words.BLANK)


def candidates(count: int, steps: int, split: str, draws: Draws, device: torch.device | str = "cpu") -> WordProblems:
    """The problems of a split among `count` random stories."""
    plans = plan(count, steps, draws, device)
    numbers, all_steps, made, right = run(plans, draws)
    chain = all_steps[right][made[right]].view(-1, steps, 4)
    inside = in_split(key(chain), split)
    plans, numbers, chain = plans[right][inside], numbers[right][inside], chain[inside]
    problem, problem_fits = write_problems(plans, numbers, draws)
    answer, answer_fits = words.write_answers(chain)
    tokens = torch.cat([problem, answer], 1).to(torch.uint8)
    operands = tables.PROGRAM.to(device)[plans][..., [0, 2]].flatten(1)
    implied = [torch.where((operands == OPERANDS.index(str(number))).any(1), number, 0) for number in CONSTANTS]
    given = torch.cat([numbers.flatten(1), torch.stack(implied, 1)], 1)
    return WordProblems(tokens, chain[:, -1, 3], given, chain, plans)[problem_fits & answer_fits]


def generate(
    split: str, count: int, steps: int, seed: int = 0, device: torch.device | str = "cpu", distinct: bool = False
) -> WordProblems:
    """Exactly `count` problems of a split, each with this many steps.

    Args:
        steps: 2 … 4.
        distinct: no two problems with the same solution; for evaluation.
    """
    if not FEWEST_STEPS <= steps <= MOST_STEPS:
        raise ValueError(f"steps is {steps}: expected {FEWEST_STEPS} … {MOST_STEPS}")
    size = min(1 << 17, max(4096, 32 * count))

    def draw(turn: int) -> tuple[Tensor, ...]:
        made = candidates(size, steps, split, Draws("word problems", seed, steps, turn, device=device), device)
        return made.tokens, made.answer, made.numbers, made.steps, made.plan

    once = (lambda rows: key(rows[3])) if distinct else None
    return WordProblems(*collected(draw, count, f"{split} with {steps} steps", once))


class WordData(Stock):
    """Training sequences from a stock of generated problems (see `masks.Data`).

    Args:
        counts: how many problems of each number of steps, for example {2: 300_000, 3: 500_000, 4: 700_000}.
        seed: of the problems and of the order in which they come.
    """

    def __init__(self, counts: dict[int, int], seed: int = 0, device: torch.device | str = "cpu", split: str = "train"):
        tokens = torch.cat([generate(split, counts[n], n, seed, device).tokens for n in sorted(counts)])
        super().__init__(tokens, words.answer_positions(1)[0], words.MASK, seed, device)
