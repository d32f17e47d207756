"""Captions are true, are read back and keep to their split; pictures are told apart by what they show."""

import random

import pytest
import torch

from dprm.data.scenes import Item, Scene, drawn
from dprm.hosts.omni import canvas
from dprm.hosts.omni.captions import LONGEST, Caption, Phrase, described, read
from dprm.hosts.omni.data import pairs
from dprm.hosts.omni.judges import falsified
from dprm.hosts.omni.predicates import BROKEN, checked, seen

CIRCLE, SQUARE, RED, BLUE, SMALL, LARGE = 0, 1, 0, 2, 0, 1
# Three red circles in the left column, a blue square at the right.
SCENE = Scene(
    (
        Item(CIRCLE, RED, LARGE, 0, 0),
        Item(CIRCLE, RED, SMALL, 1, 0),
        Item(CIRCLE, RED, LARGE, 2, 0),
        Item(SQUARE, BLUE, LARGE, 1, 2),
    )
)
GRID = SCENE.grid.tolist()


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("three red circles left of a blue square", True),
        ("left of a blue square there are three red circles", True),
        ("there are three red circles and one large blue square", True),
        ("picture of two large red circles", True),
        ("a blue square right of three red circles", True),
        ("two red circles left of a blue square", False),
        ("three red circles above a blue square", False),
        ("three red circles and a small blue square", False),
        ("a green cross", False),
    ],
)
def test_a_caption_is_true_of_what_it_describes(text, true):
    assert read(text).holds(GRID) is true


def test_both_directions_of_a_relation_say_the_same():
    left, right = read("three red circles left of a blue square"), read("a blue square right of three red circles")
    assert left.key == right.key != read("three red circles right of a blue square").key
    assert read("a blue square and three red circles").key == read("three red circles and a blue square").key


@pytest.mark.parametrize("text", ["three circles", "five red circles", "red", "", "a red circle near a blue square"])
def test_what_is_no_caption_is_shown_how_they_are_written(text):
    with pytest.raises(ValueError, match=r"prompt is .* expected such as 'three red circles left of a blue square'"):
        read(text)


@pytest.mark.parametrize("split", ["train", "test"])
def test_pairs_are_true_and_of_their_split(split):
    captions, grids = pairs(split, 40, distinct=split == "test")
    for caption, grid in zip(captions, grids.tolist(), strict=True):
        assert caption.holds(grid)
        assert caption.belongs(split)
        assert read(str(caption)) == caption
        assert len(str(caption).split()) <= LONGEST
        assert not falsified(caption, grid, random.Random(str(caption))).holds(grid)
    forms = [caption.seen for caption in captions]
    assert all(forms) if split == "train" else 0.1 < forms.count(False) / 40 < 0.6


def test_forms_that_training_has_not_shown():
    draw = random.Random(0)
    unseen = {str(caption.form) for _ in range(50) if (caption := described(GRID, draw, unseen=True)) is not None}
    assert unseen == {"picture", "there", "fronted"}
    assert not Caption(Phrase(1, 0, 0), "above", Phrase(1, 1, 1), "fronted").seen


# ---- the check without a model ---------------------------------------------------------------------------------------


def test_the_check_sees_what_was_drawn_and_forgives_two_slips_a_cell():
    _, grids = pairs("train", 60)
    pictures = drawn(grids, 16)
    assert torch.equal(seen(pictures), grids)
    pictures[:, 1, 1] = (pictures[:, 1, 1] + 1) % canvas.CODES
    assert torch.equal(seen(pictures)[:, 1:], grids[:, 1:])
    pictures[:, 1:6, 1:6] = 7
    assert bool((seen(pictures)[:, 0] == BROKEN).all())


def test_a_broken_cell_and_a_wrong_count_are_no_success():
    caption, picture = read("three red circles left of a blue square"), drawn(SCENE.grid.unsqueeze(0), 16)
    assert checked([caption], picture).tolist() == [[1.0, 1.0]]
    broken = picture.clone()
    broken[:, 6:11, 6:11] = torch.arange(25).view(5, 5) % 5
    assert checked([caption], broken).tolist() == [[1.0, 0.0]]
    assert checked([read("two red circles left of a blue square")], picture)[0].tolist() == pytest.approx([2 / 3, 0.0])


def test_canvases_hold_words_template_and_codes():
    caption = read("a red circle")
    whole = canvas.whole([caption], SCENE.grid.unsqueeze(0))
    blank = canvas.blank([caption])
    assert whole.shape == blank.shape == (1, 276)
    assert int((blank == canvas.MASK).sum()) == canvas.SLOTS == 260
    assert torch.equal(canvas.picture(whole), drawn(SCENE.grid.unsqueeze(0), 16))
    assert whole[0, [16, 273, 274, 275]].tolist() == [canvas.BEGIN, canvas.END, canvas.TURN, canvas.TEXT]
    assert all(len(side) == canvas.LENGTH for side in canvas.SIDES)
