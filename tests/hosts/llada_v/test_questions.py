"""Questions are about what the picture shows, and an answer counts exactly where it is true of it."""

from random import Random

import pytest

from dprm.data.scenes import COLOURS, SHAPES, Item, Scene, scenes
from dprm.hosts.llada_v import words
from dprm.hosts.llada_v.questions import CHOICE, COUNT, FAMILIES, FORMATS, OPEN, PLACES, Kind, ask

RED, BLUE = COLOURS.index("red"), COLOURS.index("blue")
CIRCLE, SQUARE = SHAPES.index("circle"), SHAPES.index("square")
# Three red circles, one of them large, in the top row; a small blue square in the middle.
SCENE = Scene(
    (
        Item(CIRCLE, RED, 0, 0, 0),
        Item(CIRCLE, RED, 0, 0, 1),
        Item(CIRCLE, RED, 1, 0, 2),
        Item(SQUARE, BLUE, 0, 1, 1),
    )
)


def questions(form: int, kind: str, family: str = "things", test: bool = False):
    """Many questions of a kind about the scene."""
    drawn = (ask(SCENE, family, form, Random(seed), test) for seed in range(400))
    return [question for question in drawn if question is not None and question.kind == kind]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", range(len(FORMATS)))
def test_every_reference_counts_and_fits_the_canvas(family, form):
    for number, scene in enumerate(scenes("train", 60)):
        question = ask(scene, family, form, Random(number), test=True)
        if question is not None:
            assert question.matches(question.reference), question
            canvas = words.encoded(question.words, question.reference)
            assert words.answered(canvas) == question.reference
            assert words.asked(canvas) == " ".join(question.words)


def test_a_count_may_say_what_it_counts_and_must_not_say_anything_false():
    question = next(q for q in questions(COUNT, "direct") if q.words[2:4] == ("red", "circles"))
    for answer in ("3", "three", "3 circles", "3 red circles", "there are 3", "3 red things"):
        assert question.matches(answer.split()), answer
    for answer in ("2", "3 squares", "3 blue circles", "red circles", "3 3", ""):
        assert not question.matches(answer.split()), answer


def test_a_free_count_takes_every_true_statement():
    question = questions(COUNT, "free")[0]
    for answer in ("3 red circles", "1 blue square", "2 small circles", "1 large red circle", "3 small things"):
        assert question.matches(answer.split()), answer
    for answer in ("3", "3 blue circles", "2 red circles", "2 squares", "0 crosses"):
        assert not question.matches(answer.split()), answer


def test_what_is_counted_may_have_to_be_found_out_first():
    question = next(q for q in questions(COUNT, "same") if " ".join(q.words[-6:]) == "shape of the middle one ?")
    assert question.matches(("1", "square"))
    assert not question.matches(("3", "circles"))


def test_zero_has_many_names_unless_it_is_taken_literally():
    question = next(q for q in questions(COUNT, "direct") if ("0",) in q.accepted)
    for answer in (("no",), ("none",), ("zero",)):
        assert question.matches(answer)
        assert not question.matches(answer, zero=False)
    assert question.matches(("0",), zero=False)


def test_of_a_choice_the_letter_and_what_it_stands_for_count_alone_or_together():
    question = questions(CHOICE, "which look")[0]
    letter, right = next((answer[0], answer[1]) for answer in question.accepted if len(answer) == 2)
    assert question.matches((letter,))
    assert question.matches((right,))
    assert question.matches((letter, right))
    other = "B" if letter == "A" else "A"
    assert not question.matches((other,))
    assert not question.matches((other, right))


def test_an_open_answer_must_say_what_was_asked_and_nothing_false():
    question = next(q for q in questions(OPEN, "look") if "colour" in q.words and "top left" in " ".join(q.words))
    assert question.matches(("red",))
    assert question.matches(("a", "red", "circle"))
    assert not question.matches(("circle",))
    assert not question.matches(("red", "square"))


def test_relations_are_told_by_rows_and_columns():
    below = next(q for q in questions(OPEN, "across", "relations") if "below" in q.words)
    assert below.matches(("blue", "square"))
    assert not below.matches(("red", "circle"))


def test_some_templates_appear_only_in_the_test_split():
    asked = [
        q for form in range(3) for seed in range(200) if (q := ask(SCENE, "things", form, Random(seed), test=True))
    ]
    fresh = {q.words for q in asked if q.unseen}
    seen = {q.words for form in range(3) for seed in range(400) if (q := ask(SCENE, "things", form, Random(seed)))}
    assert 0.2 < len([q for q in asked if q.unseen]) / len(asked) < 0.45
    assert not fresh & seen


def test_a_kind_says_less_in_several_ways_but_never_nothing():
    parts = set(Kind(0, RED, CIRCLE).parts())
    assert len(parts) == 7
    assert Kind() not in parts
    assert len(PLACES) == 9
    assert PLACES[4] == "middle"


def test_a_canvas_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="17 words: expected at most 16"):
        words.encoded(["a"] * 17)
    with pytest.raises(ValueError, match="5 words: expected at most 4"):
        words.encoded(["a"], ["red"] * 5)
