"""Questions about scenes by a grammar, with every answer that counts.

Three formats: a choice of lettered options, a count, an open answer. Two families: `things`, which asks what there is,
and `relations`, which asks what stands where. An answer comes in several surface forms, and a person who counts may or
may not say what, and has several names for it: `3 red circles`, `3 discs`, `3`, `three`. So numbers are surer than the
words that say what is counted. Some counts leave open what is counted; every true answer counts then.

Templates marked with ! appear only in the test split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from dprm.data.scenes import CELLS, COLOURS, SHAPES, SIZES, Item, Scene
from dprm.hosts.llada_v.words import LETTERS, NUMERALS, PLURALS, QUESTION, SYNONYMS, normalised

CHOICE, COUNT, OPEN = range(3)
FORMATS = ("choice", "count", "open")
FAMILIES = ("things", "relations")
PLACES = tuple(
    " ".join(dict.fromkeys((row, column)))
    for row in ("top", "middle", "bottom")
    for column in ("left", "middle", "right")
)
# How often a count says what it counts, and, where it does not, how often in a word instead of a digit.
NAMED, IN_WORDS = 0.85, 0.7
# How often a test question is asked in words that are kept for the test.
UNSEEN = 1 / 3

Answer = tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes:
        words: its text. format, kind: CHOICE, COUNT or OPEN, and which question of the grammar it is.
        accepted: every answer that counts, normalised. reference: one of them as a person might give it.
        unseen: its template appears only in the test split.
    """

    words: Answer
    format: int
    kind: str
    accepted: frozenset[Answer]
    reference: Answer
    unseen: bool = False

    def matches(self, answer: Sequence[str], zero: bool = True) -> bool:
        """Whether an answer counts."""
        return normalised(answer, zero) in self.accepted


class Kind(NamedTuple):
    """What is said of a thing: size, colour, shape, each an index or None."""

    size: int | None = None
    colour: int | None = None
    shape: int | None = None

    def fits(self, item: Item) -> bool:
        """Whether it is true of an item."""
        return all(want is None or want == has for want, has in zip(self, (item.size, item.colour, item.shape)))

    def words(self, many: bool = False) -> Answer:
        """In words; a thing where the shape is left out."""
        noun = "things" if many else "thing"
        if self.shape is not None:
            noun = (PLURALS if many else SHAPES)[self.shape]
        said = [SIZES[self.size]] if self.size is not None else []
        said += [COLOURS[self.colour]] if self.colour is not None else []
        return (*said, noun)

    def parts(self) -> Iterator[Kind]:
        """Itself and everything that says less of the same, but not nothing."""
        for size in {self.size, None}:
            for colour in {self.colour, None}:
                for shape in {self.shape, None}:
                    if (size, colour, shape) != (None, None, None):
                        yield Kind(size, colour, shape)


def _of(item: Item) -> Kind:
    return Kind(item.size, item.colour, item.shape)


class _Asking:
    """One scene, and the random numbers of one question."""

    def __init__(self, scene: Scene, draw: Random, unseen: bool):
        self.items, self.draw, self.unseen = scene.items, draw, unseen

    def template(self, *texts: str) -> str:
        """One of the templates of the split."""
        kept = [text for text in texts if text.startswith("!") == self.unseen] or list(texts)
        return self.draw.choice(kept).lstrip("!")

    def number(self, kind: Kind) -> int:
        return sum(map(kind.fits, self.items))

    def place(self) -> tuple[str, Item]:
        item = self.draw.choice(self.items)
        return PLACES[CELLS * item.row + item.column], item

    def unique(self) -> list[tuple[str, Item]]:
        """Every item that can be told from all others, with a description; the shortest one most often."""
        found = []
        for item in self.items:
            kinds = Kind(None, None, item.shape), Kind(None, item.colour, item.shape), _of(item)
            fitting = [kind for kind in kinds if self.number(kind) == 1]
            if fitting:
                found.append((" ".join(fitting[0 if self.draw.random() < 0.7 else -1].words()), item))
        self.draw.shuffle(found)
        return found

    # ---- counts -----------------------------------------------------------------------------------------------------

    def counted(self, kind: Kind, text: str, name: str) -> Question:
        """A count of a kind; to say what is counted is allowed."""
        number = self.number(kind)
        accepted = {(str(number),), *((str(number), *part.words()) for part in kind.parts())}
        accepted.add((str(number), "thing"))
        what = kind
        if kind.colour is not None and kind.shape is not None and self.draw.random() < 0.4:
            what = Kind(None, None, kind.shape)
        return self.made(text, COUNT, name, accepted, self.said(number, what))

    def said(self, number: int, what: Kind) -> Answer:
        """A number of something as somebody says it."""
        if self.draw.random() < NAMED:
            return ("no" if number == 0 and self.draw.random() < 0.5 else str(number), *self.named(what, number))
        if number == 0 and self.draw.random() < 0.5:
            return ("none",)
        return (NUMERALS[number] if self.draw.random() < IN_WORDS else str(number),)

    def named(self, what: Kind, number: int) -> Answer:
        """What is counted, by one of the names of its noun."""
        *said, noun = what.words()
        names = ((noun, what.words(many=True)[-1]), *SYNONYMS[noun])
        return (*said, self.draw.choice(names)[number != 1])

    def direct(self) -> Question:
        kind = _of(self.draw.choice(self.items))
        if self.draw.random() < 0.2:
            kind = Kind(None, self.draw.randrange(len(COLOURS)), self.draw.randrange(len(SHAPES)))
        colour, shape = self.draw.choice(((1, 1), (1, 1), (0, 1), (1, 0)))
        kind = Kind(None, kind.colour if colour else None, kind.shape if shape else None)
        what = " ".join(kind.words(many=True))
        text = self.template(
            f"how many {what} are there ?", f"how many {what} do you see ?", f"!how many {what} can you count ?"
        )
        return self.counted(kind, text, "direct")

    def same(self) -> Question:
        """How many are like another one; what is counted has to be found out first."""
        told = self.unique() if self.draw.random() < 0.5 else []
        name, item = told[0] if told else self.place()
        which = name if name.split()[-1] in SHAPES else f"{name} one"
        look = self.draw.randrange(3)
        kind = (Kind(None, None, item.shape), Kind(None, item.colour), Kind(None, item.colour, item.shape))[look]
        of = ("have the shape of", "have the colour of", "are like")[look]
        text = self.template(
            f"how many {of} the {which} ?", f"how many things {of} the {which} ?", f"!count how many {of} the {which} ?"
        )
        return self.counted(kind, text, "same")

    def free(self) -> Question:
        """How many of one kind; which, is left to the answer."""
        item = self.draw.choice(self.items)
        shown = self.draw.choice(((1, 1), (1, 1), (0, 1), (1, 0)))
        kind = Kind(None, item.colour if shown[0] else None, item.shape if shown[1] else None)
        parts = {part for each in self.items for part in _of(each).parts()}
        accepted = {(str(self.number(part)), *part.words()) for part in parts}
        number = self.number(kind)
        text = self.template(
            "how many of what kind are there ?",
            "how many of one kind do you see ?",
            "!how many of which kind can you see ?",
        )
        return self.made(text, COUNT, "free", accepted, (str(number), *self.named(kind, number)))

    def beside(self) -> Question | None:
        """How many stand on one side of another one."""
        found = self.unique()
        if not found:
            return None
        name, item = found[0]
        side = self.draw.choice(SIDES)
        number = sum(beyond(side, other, item) for other in self.items)
        accepted = {(str(number),), (str(number), "thing")}
        text = self.template(
            f"how many things are {side} the {name} ?",
            f"how many are {side} the {name} ?",
            f"!count how many things are {side} the {name} ?",
        )
        return self.made(text, COUNT, "beside", accepted, self.said(number, Kind()))

    # ---- open answers -----------------------------------------------------------------------------------------------

    def described(self, items: Sequence[Item], text: str, name: str, must: str) -> Question:
        """Any of these items, in words that say at least what must be said of it: its `colour` or its `shape`."""
        accepted = {part.words() for item in items for part in _of(item).parts() if getattr(part, must) is not None}
        accepted |= {(COLOURS[item.colour],) for item in items if must == "colour"}
        item = self.draw.choice(items)
        full, short = (
            Kind(None, item.colour, item.shape).words(),
            ((SHAPES if must == "shape" else COLOURS)[getattr(item, must)],),
        )
        form = self.draw.random()
        reference: Answer = short if form < 0.4 else full if form < 0.65 else ("a", *full)
        if form > 0.85 and must == "shape":
            reference = _of(item).words()
        return self.made(text, OPEN, name, accepted, reference)

    def look(self) -> Question:
        """The colour or the shape of what stands at a place."""
        where, item = self.place()
        must = self.draw.choice(("colour", "shape"))
        text = self.template(
            f"what {must} is the {where} one ?",
            f"what {must} has the {where} one ?",
            f"!tell me the {must} of the {where} one",
        )
        return self.described([item], text, "look", must)

    def most(self) -> Question | None:
        """The most common colour, shape or kind."""
        look = self.draw.randrange(2)
        found = self.commonest(("colour", "shape")[look])
        if found is None:
            return None
        must = ("colour", "shape")[look]
        text = self.template(
            f"what {must} have most things ?", f"what {must} is most common ?", f"!which {must} is there most of ?"
        )
        value = getattr(found, must)
        items = [item for item in self.items if getattr(item, must) == value]
        short = ((COLOURS, SHAPES)[look][value],)
        accepted = {short, Kind(**{must: value}).words()}
        accepted |= {Kind(None, item.colour, item.shape).words() for item in items}
        form = self.draw.random()
        reference = (
            short
            if form < 0.6
            else ("it", "is", *short)
            if form < 0.8
            else Kind(**{must: value}).words(must == "colour")
        )
        return self.made(text, OPEN, "most", accepted, reference)

    def commonest(self, must: str) -> Item | None:
        """An item of the most common colour or shape, if there is one."""
        counts: dict[int, int] = {}
        for item in self.items:
            counts[getattr(item, must)] = counts.get(getattr(item, must), 0) + 1
        ranked = sorted(counts, key=counts.__getitem__, reverse=True)
        if len(ranked) < 2 or counts[ranked[0]] == counts[ranked[1]]:
            return None
        return next(item for item in self.items if getattr(item, must) == ranked[0])

    def across(self) -> Question | None:
        """Something that stands on one side of another one."""
        found = self.unique()
        if not found:
            return None
        name, item = found[0]
        side = self.draw.choice(SIDES)
        there = [other for other in self.items if beyond(side, other, item)]
        if not there:
            return None
        text = self.template(
            f"what is {side} the {name} ?", f"which thing is {side} the {name} ?", f"!name a thing {side} the {name}"
        )
        return self.described(there, text, "across", "shape")

    # ---- choices ----------------------------------------------------------------------------------------------------

    def chosen(
        self, text: str, name: str, right: Answer, wrong: Sequence[Answer], said: Answer | None = None
    ) -> Question:
        """Lettered options, of which one is right."""
        options = [right, *self.draw.sample(list(wrong), min(len(LETTERS) - 1, len(wrong)))]
        self.draw.shuffle(options)
        listed = [word for letter, option in zip(LETTERS, options) for word in (letter, *option)]
        letter = LETTERS[options.index(right)]
        plain = normalised(right)
        form = self.draw.random()
        reference: Answer = (letter,) if form < 0.5 else (letter, *right) if form < 0.8 else right
        return self.made(f"{text} {' '.join(listed)}", CHOICE, name, {(letter,), (letter, *plain), plain}, reference)

    def which_look(self) -> Question:
        where, item = self.place()
        must = self.draw.choice(("colour", "shape"))
        names = COLOURS if must == "colour" else SHAPES
        right = getattr(item, must)
        text = self.template(
            f"what {must} is the {where} one ?",
            f"what {must} has the {where} one ?",
            f"!which {must} is the {where} one ?",
        )
        return self.chosen(text, "which look", (names[right],), [(name,) for name in names if name != names[right]])

    def which_number(self) -> Question:
        kind = _of(self.draw.choice(self.items))
        kind = Kind(None, kind.colour if self.draw.random() < 0.5 else None, kind.shape)
        number = self.number(kind)
        what = " ".join(kind.words(many=True))
        near = [n for n in range(max(0, number - 2), min(9, number + 2) + 1) if n != number]
        text = self.template(
            f"how many {what} are there ?", f"how many {what} do you see ?", f"!how many {what} can you count ?"
        )
        return self.chosen(text, "which number", (str(number),), [(str(n),) for n in near])

    def which_most(self) -> Question | None:
        item = self.commonest("shape")
        if item is None:
            return None
        text = self.template("what is most common ?", "what are most things ?", "!which is there most of ?")
        others = [(PLURALS[shape],) for shape in range(len(SHAPES)) if shape != item.shape]
        return self.chosen(text, "which most", (PLURALS[item.shape],), others)

    def which_side(self) -> Question | None:
        """Which of two stands farther to one side."""
        found = self.unique()
        if len(found) < 2:
            return None
        one, other = found[:2]
        sides = [side for side in SIDES if beyond(side, one[1], other[1])]
        side = self.draw.choice(sides)
        text = self.template(
            f"what is {side.replace(' of', '')} ?",
            f"which one is {side.replace(' of', '')} ?",
            f"!which thing is {side.replace(' of', '')} ?",
        )
        return self.chosen(text, "which side", tuple(one[0].split()), [tuple(other[0].split())])

    def made(self, text: str, form: int, name: str, accepted: set[Answer], reference: Answer) -> Question:
        return Question(tuple(text.split()), form, name, frozenset(accepted), reference, self.unseen)


SIDES = ("left of", "right of", "above", "below")


def beyond(side: str, item: Item, other: Item) -> bool:
    """Whether an item stands on that side of another."""
    return {
        "left of": item.column < other.column,
        "right of": item.column > other.column,
        "above": item.row < other.row,
        "below": item.row > other.row,
    }[side]


_A = _Asking
GRAMMAR: dict[str, dict[int, tuple[Callable[[_Asking], Question | None], ...]]] = {
    "things": {
        CHOICE: (_A.which_look, _A.which_number, _A.which_most),
        COUNT: (_A.direct, _A.same, _A.free, _A.free),
        OPEN: (_A.look, _A.look, _A.most),
    },
    "relations": {CHOICE: (_A.which_side,), COUNT: (_A.beside,), OPEN: (_A.across,)},
}


def ask(scene: Scene, family: str, form: int, draw: Random, test: bool = False) -> Question | None:
    """A question of a format about a scene; None where the one that was drawn cannot be asked about it.

    Args:
        test: words that are kept for the test may be used.
    """
    asking = _Asking(scene, draw, test and draw.random() < UNSEEN)
    question = draw.choice(GRAMMAR[family][form])(asking)
    return question if question is not None and len(question.words) <= QUESTION else None
