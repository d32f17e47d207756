"""The clauses of `word_stories` as tables of integers, so that stories are drawn, solved and written by indexing.

A clause's text becomes codes: a code below V is a token, any other stands for a column of the story's *fillings*:

    V + 0 … 2   digits of x      V + 3 … 5   digits of y      V + 6 …   slot words      last   left out
"""

from __future__ import annotations

import torch
from torch import Tensor

from dprm.hosts.puma_words.stories import (
    CLAUSES,
    HERO,
    LAWS,
    OPERANDS,
    OPERATORS,
    PRONOUNS,
    SLOTS,
    THEMES,
    Clause,
)
from dprm.hosts.puma_words.words import PLACES, TOKEN, VOCABULARY

# A clause that says nothing: shorter stories are filled up with it.
NOTHING = len(CLAUSES)
_ALL = (*CLAUSES, Clause("", -1, "", ""))
WORD_SLOTS = (*SLOTS, "{others}", *HERO, *PRONOUNS)
LEFT_OUT = VOCABULARY + 2 * PLACES + len(WORD_SLOTS)
# Laws whose bounds depend on other numbers come after those of `LAWS`.
LAW_NAMES = ("none", *LAWS, "below v", "below x", "above v", "divides v")


def _codes(clause: Clause) -> list[int]:
    codes: list[int] = []
    for word in clause.words():
        if word in ("{x}", "{y}"):
            first = VOCABULARY + PLACES * ("{x}", "{y}").index(word)
            codes += range(first, first + PLACES)
        elif word in WORD_SLOTS:
            codes.append(VOCABULARY + 2 * PLACES + WORD_SLOTS.index(word))
        else:
            codes.append(TOKEN[word])
    return codes


def _padded(rows: list[list[int]], filler: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def _program(clause: Clause) -> list[list[int]]:
    """Two steps of (left, operator, right); the operator is −1 where there is no step."""
    steps = [
        [OPERANDS.index(left), OPERATORS.index(operator), OPERANDS.index(right)]
        for left, operator, right in clause.steps()
    ]
    return steps + [[0, -1, 0]] * (2 - len(steps))


# [C,P] codes of the text, C clauses.
CODES = _padded([_codes(clause) for clause in _ALL], LEFT_OUT)
# [C,2,3] the steps.
PROGRAM = torch.tensor([_program(clause) for clause in _ALL])
# [C] how many steps.
STEPS = (PROGRAM[:, :, 1] >= 0).sum(1)
# [C,2] index into LAW_NAMES of x and y.
LAW = torch.tensor([[LAW_NAMES.index(clause.law(slot)) for slot in ("x", "y")] for clause in _ALL])
# [laws] fewest and most, where they do not depend on other numbers.
FEWEST = torch.tensor([0, *(low for low, _ in LAWS.values()), 2, 2, 2, 2])
MOST = torch.tensor([0, *(high for _, high in LAWS.values()), 0, 0, 0, 12])


def _by_theme(role: int) -> tuple[Tensor, Tensor]:
    """[themes, most] the clauses of a role, and how many every theme has."""
    rows = [[index for index, c in enumerate(CLAUSES) if c.theme == theme and c.role == role] for theme in THEMES]
    return _padded(rows, NOTHING), torch.tensor([len(row) for row in rows])


# For every role its clauses by theme.
CHOICES = tuple(_by_theme(role) for role in range(4))


# For every slot of SLOTS the tokens it may take; for every pronoun those of men and women.
SLOT_WORDS = {slot: torch.tensor([TOKEN[word] for word in words]) for slot, words in SLOTS.items()}
PRONOUN_WORDS = {slot: torch.tensor([TOKEN[word] for word in pair]) for slot, pair in PRONOUNS.items()}
