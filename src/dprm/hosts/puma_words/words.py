"""The canvas of a word problem: words, digits, and where they stand.

    position 0 … 63     the problem, one token a word, one a digit, then blanks
    position 64 … 111   the answer: steps and the final number, `4*6=24;24-5=19;#19`, then EOT to the end

Words are whole tokens of a small closed vocabulary; numbers are spelled in digits, so that a model has to do the
arithmetic digit by digit. Shapes: N problems, L = 112 positions, V vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from dprm.data.characters import digits, pack, spell
from dprm.hosts.puma_words.stories import CLAUSES, OPERATORS, PRONOUNS, SLOTS
from dprm.train.transformer import Config

# Digits first, then operators, then separators: a token's class is where it lies in this line.
CHARACTERS = "0123456789" + OPERATORS + "=;#"
DIGITS = tuple(range(10))
FINAL = CHARACTERS.index("#")
_SPOKEN = {word for clause in CLAUSES for word in clause.words() if "{" not in word}
_FILLED = {word for words in SLOTS.values() for word in words}
_PRONOUNS = {word for pair in PRONOUNS.values() for word in pair}
WORDS = tuple(sorted(_SPOKEN | _FILLED | _PRONOUNS))
TOKEN = {word: len(CHARACTERS) + index for index, word in enumerate(WORDS)}
BLANK, EOT, MASK = range(len(CHARACTERS) + len(WORDS), len(CHARACTERS) + len(WORDS) + 3)
VOCABULARY = MASK + 1

PROMPT, RESPONSE = 64, 48
LENGTH = PROMPT + RESPONSE
PLACES = 3
LARGEST_VALUE = 10**PLACES - 1

# What the model is told about a position: 0 in the problem, and its place in the answer.
SIDES = ((0,) * PROMPT + tuple(range(1, RESPONSE + 1)),)


def word_config(width: int = 256, depth: int = 8) -> Config:
    """The shared transformer for this canvas, with heads of 32 dimensions; 256 × 8 has 7.0 million parameters."""
    return Config(VOCABULARY, width, depth, heads=max(1, width // 32), sides=SIDES)


def write_answers(steps: Tensor) -> tuple[Tensor, Tensor]:
    """Answer tokens of solutions.

    Args:
        steps: [N,S,4] int64: left operand, operator 0 … 3 for + - * /, right operand, result; values up to 999.

    Returns:
        tokens [N,48], filled up with EOT, and fits [N] bool.
    """
    left, operator, right, result = steps.unbind(-1)
    spelled = [digits(value, PLACES) for value in (left, right, result)]
    (left, left_shown), (right, right_shown), (result, result_shown) = spelled
    operator = operator.unsqueeze(-1) + CHARACTERS.index(OPERATORS[0])
    equals, semicolon = (torch.full_like(operator, CHARACTERS.index(sign)) for sign in "=;")
    always = torch.ones_like(operator, dtype=torch.bool)
    tokens = torch.cat([left, operator, right, equals, result, semicolon], -1).flatten(1)
    kept = torch.cat([left_shown, always, right_shown, always, result_shown, always], -1).flatten(1)
    final = torch.full_like(tokens[:, :1], FINAL)
    tokens = torch.cat([tokens, final, result[:, -1]], 1)
    kept = torch.cat([kept, always[:, 0], result_shown[:, -1]], 1)
    return pack(tokens, kept, RESPONSE, EOT)


def answer_positions(rows: int, device: torch.device | str = "cpu") -> Tensor:
    """[rows,112] bool: the answer."""
    return (torch.arange(LENGTH, device=device) >= PROMPT).expand(rows, LENGTH)


def blank_canvases(tokens: Tensor) -> Tensor:
    """Canvases [N,112] int64 of problems [N, ≥ 64] with the whole answer masked."""
    asked = tokens[:, :PROMPT].long()
    return torch.cat([asked, asked.new_full((len(asked), RESPONSE), MASK)], 1)


def write_prompt(tokens: Sequence[int]) -> str:
    """The problem of one canvas [112], or of its first 64 positions, as English text."""
    text = " ".join(_spelling(token) for token in tokens[:PROMPT] if token != BLANK)
    text = re.sub(r"(?<=\d) (?=\d)| (?=[.?])", "", text)
    return re.sub(r"(^|[.?] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def read_answer(tokens: Sequence[int]) -> str:
    """The answer of one canvas [112] as text, up to the first EOT; `?` where a token is no character."""
    return spell(tokens[PROMPT:], CHARACTERS, EOT)


def _spelling(token: int) -> str:
    if token < len(CHARACTERS):
        return CHARACTERS[token]
    return WORDS[token - len(CHARACTERS)] if token < BLANK else "_"
