"""Words as tokens, where a question and an answer stand on the canvas, and when an answer counts as one.

    canvas = question (16 tokens, filled up with blanks) · answer (4 slots, filled up with EOT)

An answer is matched after normalisation: numbers are digits, nouns are singular and one a shape, articles and `it is`
are nothing; and `no`, `none` and `zero` are 0, unless that last part is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dprm.data.scenes import COLOURS, SHAPES, SIZES

QUESTION, SLOTS = 16, 4
LENGTH = QUESTION + SLOTS
LETTERS = ("A", "B", "C")
DIGITS = tuple("0123456789")
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PLURALS = tuple("crosses" if shape == "cross" else f"{shape}s" for shape in SHAPES)
# Other names of shapes and of things, singular and plural; questions use none of them.
SYNONYMS = {
    "circle": (("disc", "discs"), ("dot", "dots")),
    "square": (("box", "boxes"), ("block", "blocks")),
    "triangle": (("wedge", "wedges"), ("tent", "tents")),
    "cross": (("mark", "marks"), ("star", "stars")),
    "thing": (("object", "objects"), ("item", "items")),
}
_OTHERS = (
    "no none a it is thing things kind ? what which how many are there do you see can have has the of like shape "
    "colour most common count left right above below top middle bottom tell me name"
)
BLANK, EOT, MASK = 0, 1, 2
WORDS = ("", "□", "·", *LETTERS, *DIGITS, *NUMERALS, *COLOURS, *SHAPES, *PLURALS, *SIZES, *_OTHERS.split())
WORDS += tuple(form for names in SYNONYMS.values() for name in names for form in name)
TOKEN = {word: token for token, word in enumerate(WORDS)}
VOCABULARY = len(WORDS)
NUMBERS = tuple(TOKEN[word] for word in (*DIGITS, *NUMERALS, "no", "none"))

_ZERO = {"no": "0", "none": "0", "zero": "0"}
_SAME = {
    **{numeral: digit for digit, numeral in zip(DIGITS, NUMERALS) if digit != "0"},
    **dict(zip(PLURALS, SHAPES)),
    "things": "thing",
    **{form: noun for noun, names in SYNONYMS.items() for name in names for form in name},
    **dict.fromkeys(("a", "it", "is", "there", "are", "the", "of"), ""),
}


def normalised(words: Sequence[str], zero: bool = True) -> tuple[str, ...]:
    """An answer as it is matched. zero: `no`, `none` and `zero` are 0."""
    same = {**_SAME, **_ZERO} if zero else _SAME
    return tuple(said for word in words if (said := same.get(word, word)))


def encoded(question: Sequence[str], answer: Sequence[str] | None = None) -> list[int]:
    """A canvas; without an answer its slots are masked."""
    if len(question) > QUESTION:
        raise ValueError(f"question has {len(question)} words: expected at most {QUESTION}")
    asked = [TOKEN[word] for word in question]
    asked += [BLANK] * (QUESTION - len(asked))
    if answer is None:
        return asked + [MASK] * SLOTS
    if len(answer) > SLOTS:
        raise ValueError(f"answer has {len(answer)} words: expected at most {SLOTS}")
    said = [TOKEN[word] for word in answer]
    return asked + said + [EOT] * (SLOTS - len(said))


def answered(tokens: Sequence[int]) -> tuple[str, ...]:
    """The words of an answer: those before the first EOT."""
    slots = list(tokens[QUESTION:])
    return tuple(WORDS[token] for token in (slots[: slots.index(EOT)] if EOT in slots else slots))


def asked(tokens: Sequence[int]) -> str:
    """The question of a canvas."""
    return " ".join(WORDS[token] for token in tokens[:QUESTION] if token != BLANK)


def slots() -> Tensor:
    """[L] bool, the positions of the answer."""
    return torch.arange(LENGTH) >= QUESTION
