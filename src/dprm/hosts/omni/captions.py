"""Captions of scenes by a small grammar: what is said, how it is said, and whether it is true of a scene.

    plain      three red circles left of a blue square
    picture    picture of two small green crosses and a yellow square
    there      there are three red circles left of a blue square
    fronted    left of a blue square there are three red circles

A phrase says exactly how many there are of a kind. In training a picture is "of" things without a relation, "there are"
things in one, and nothing is fronted: the other combinations of form and relation are met in the test split only.
"""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dprm.data.scenes import CELLS, COLOURS, SHAPES, SIZES
from dprm.data.splits import in_split

COUNTS = ("a", "two", "three", "four")
# Name → (reads the other way round, axis of the grid, direction); "and" says nothing of places.
RELATIONS = ("left of", "right of", "above", "below")
AND = "and"
FORMS = ("plain", "picture", "there", "fronted")
LONGEST = 16
PLURALS = tuple(shape + ("es" if shape.endswith("s") else "s") for shape in SHAPES)
WORDS = (
    *COUNTS,
    *SIZES,
    *COLOURS,
    *SHAPES,
    *PLURALS,
    "left",
    "right",
    "of",
    "above",
    "below",
    AND,
    "picture",
    "there",
    "are",
)
# Of the captions of the test split, those in a form that training has not shown.
_UNSEEN = 0.25
# How often a scene of several kinds is described by one of them, and how often a phrase names a size.
_SINGLE, _SIZED = 0.15, 0.3


@dataclass(frozen=True)
class Phrase:
    """`count` things of a kind; indices of SHAPES, COLOURS and SIZES, size −1 where it is not said."""

    count: int
    shape: int
    colour: int
    size: int = -1

    def __str__(self) -> str:
        noun = SHAPES[self.shape] if self.count == 1 else PLURALS[self.shape]
        size = () if self.size < 0 else (SIZES[self.size],)
        return " ".join((COUNTS[self.count - 1], *size, COLOURS[self.colour], noun))

    def cells(self, grid: Sequence[int]) -> list[int]:
        """The cells of a grid (see `scenes.grids`) with such a thing."""
        return [cell for cell, content in enumerate(grid) if content and self.names(content - 1)]

    @property
    def content(self) -> int:
        """What a cell with such a thing holds; it is large where no size is said."""
        size = len(SIZES) - 1 if self.size < 0 else self.size
        return 1 + (self.shape * len(COLOURS) + self.colour) * len(SIZES) + size

    def names(self, content: int) -> bool:
        kind, size = divmod(content, len(SIZES))
        return kind == self.shape * len(COLOURS) + self.colour and self.size in (-1, size)


@dataclass(frozen=True)
class Caption:
    """One phrase, or two with "and" or a relation between them, in one of FORMS."""

    first: Phrase
    relation: str = ""
    second: Phrase | None = None
    form: str = "plain"

    def __str__(self) -> str:
        if self.second is None:
            said = str(self.first)
        elif self.form == "fronted":
            return f"{self.relation} {self.second} there are {self.first}"
        else:
            said = f"{self.first} {self.relation} {self.second}"
        return {"picture": "picture of ", "there": "there are "}.get(self.form, "") + said

    @property
    def seen(self) -> bool:
        """Whether training has captions of this form."""
        if self.form == "plain":
            return True
        return self.form == ("there" if self.relation in RELATIONS else "picture")

    @property
    def key(self) -> int:
        """What is said, however it is said: "A left of B" and "B right of A" are one."""
        first, second, relation = self.first, self.second, self.relation
        if second is not None and relation in (*RELATIONS, AND):
            turned = dict(zip(RELATIONS, ("right of", "left of", "below", "above"))).get(relation, AND)
            said = min(f"{first}|{relation}|{second}", f"{second}|{turned}|{first}")
            return zlib.crc32(said.encode())
        return zlib.crc32(f"{first}||".encode())

    def belongs(self, split: str) -> bool:
        """Whether this is a caption of a split."""
        return bool(in_split(torch.tensor([self.key]), split))

    def parts(self, grid: Sequence[int]) -> tuple[bool, ...]:
        """Whether each thing that is said is true of a grid: the counts, and the relation."""
        first = self.first.cells(grid)
        counted = len(first) == self.first.count
        if self.second is None:
            return (counted,)
        second = self.second.cells(grid)
        both = counted, len(second) == self.second.count
        return both if self.relation == AND else (*both, related(first, self.relation, second))

    def holds(self, grid: Sequence[int]) -> bool:
        """Whether all of it is true."""
        return all(self.parts(grid))


def related(first: Sequence[int], relation: str, second: Sequence[int]) -> bool:
    """Whether all cells of the first are, for example, left of all cells of the second; False where one is empty."""
    if not first or not second:
        return False
    if relation in ("right of", "below"):
        first, second = second, first
    across = relation in ("left of", "right of")
    before, after = ([cell % CELLS if across else cell // CELLS for cell in cells] for cells in (first, second))
    return max(before) < min(after)


def described(grid: Sequence[int], draw: random.Random, unseen: bool = False) -> Caption | None:
    """A true caption of a grid, drawn; None where there is none in a form that is (not) seen in training."""
    kinds = Counter((content - 1) // len(SIZES) for content in grid if content)
    named = [kind for kind, count in kinds.items() if count <= len(COUNTS)]
    if not named:
        return None
    draw.shuffle(named)
    phrases = [_phrase(grid, kind, draw) for kind in named[:2]]
    first, second = phrases[0], phrases[1] if len(phrases) > 1 else None
    relation = ""
    if second is not None and len(kinds) > 1 and draw.random() < _SINGLE:
        second = None
    if second is not None:
        cells = first.cells(grid), second.cells(grid)
        true = [name for name in RELATIONS if related(cells[0], name, cells[1])]
        relation = draw.choice(true) if true and draw.random() < 0.85 else AND
    forms = [form for form in FORMS if form != "fronted" or relation in RELATIONS]
    options = [Caption(first, relation, second, form) for form in forms]
    options = [caption for caption in options if caption.seen is not unseen]
    return draw.choice(options) if options else None


def _phrase(grid: Sequence[int], kind: int, draw: random.Random) -> Phrase:
    """Things of a kind, or those of them that have one size."""
    shape, colour = divmod(kind, len(COLOURS))
    sizes = [(content - 1) % len(SIZES) for content in grid if content and (content - 1) // len(SIZES) == kind]
    if draw.random() < _SIZED:
        size = draw.choice(sizes)
        return Phrase(sizes.count(size), shape, colour, size)
    return Phrase(len(sizes), shape, colour)


def captions(grids: Tensor, split: str, seed: int = 0) -> list[Caption | None]:
    """A caption of every grid [N,9] that belongs to the split as the grid does; None where the drawn ones do not.

    A quarter of those of the test split are in a form that training has not shown.
    """
    made: list[Caption | None] = []
    for row, grid in enumerate(grids.tolist()):
        draw = random.Random(f"{split} {seed} {row}")
        unseen = split == "test" and draw.random() < _UNSEEN
        tries = (described(grid, draw, unseen) for _ in range(6))
        made.append(next((caption for caption in tries if caption is not None and caption.belongs(split)), None))
    return made


# ---- as people write them --------------------------------------------------------------------------------------------

_NUMBERS, _NOUNS = "|".join((*COUNTS, "an", "one")), "|".join((*PLURALS, *SHAPES))
_PHRASE = rf"({_NUMBERS}) (?:({'|'.join(SIZES)}) )?({'|'.join(COLOURS)}) ({_NOUNS})"
_PLAIN = re.compile(rf"(?:(picture of|there are|there is) )?{_PHRASE}(?: ({'|'.join((*RELATIONS, AND))}) {_PHRASE})?")
_FRONTED = re.compile(rf"({'|'.join(RELATIONS)}) {_PHRASE} there (?:are|is) {_PHRASE}")


def read(text: str) -> Caption:
    """The caption that a text is; ValueError shows how captions are written."""
    plain = " ".join(text.lower().replace(",", " ").split())
    if matched := _FRONTED.fullmatch(plain):
        relation, *rest = matched.groups()
        return Caption(_read(rest[4:]), relation, _read(rest[:4]), "fronted")
    matched = _PLAIN.fullmatch(plain)
    if matched is None:
        raise ValueError(
            f"prompt is {text!r}: expected such as 'three red circles left of a blue square'; counts "
            f"{', '.join(COUNTS)}; sizes {', '.join(SIZES)} or none; colours {', '.join(COLOURS)}; shapes "
            f"{', '.join(SHAPES)}; relations {', '.join((*RELATIONS, AND))}"
        )
    form, *rest = matched.groups()
    form = "plain" if form is None else form.split()[0]
    second = None if rest[4] is None else _read(rest[5:])
    return Caption(_read(rest[:4]), rest[4] or "", second, form)


def _read(words: Sequence[str | None]) -> Phrase:
    count, size, colour, noun = words
    assert count is not None
    assert colour is not None
    assert noun is not None
    number = 1 if count in ("an", "one") else COUNTS.index(count) + 1
    shape = PLURALS.index(noun) if noun in PLURALS else SHAPES.index(noun)
    return Phrase(number, shape, COLOURS.index(colour), -1 if size is None else SIZES.index(size))
