"""Training pictures: what they show is said."""

import torch

from dprm.hosts.omni import canvas
from dprm.hosts.omni.captions import read
from dprm.hosts.omni.data import PictureData, pairs, tidy
from dprm.hosts.omni.predicates import checked, seen


def test_tidy_pictures_show_what_is_said_and_nothing_else():
    captions, _ = pairs("train", 200)
    for caption in captions:
        grid = tidy(caption).tolist()
        assert caption.holds(grid)
        said = caption.first.count + (0 if caption.second is None else caption.second.count)
        assert len([content for content in grid if content]) == said
    left = tidy(read("three red circles left of a blue square")).view(3, 3)
    assert bool((left[:, 0] > 0).all())
    assert int((left[:, 2] > 0).sum()) == 1


def test_training_sequences_are_a_function_of_seed_and_step_and_true():
    data = PictureData(3, "cpu", count=60)
    clean, answer = data.batch(5, 16)
    assert torch.equal(clean, PictureData(3, "cpu", count=60).batch(5, 16)[0])
    assert answer[0].tolist() == [False] * 16 + [True] * 260
    assert not bool((clean == canvas.MASK).any())
    words = {
        tuple(row.tolist()): caption
        for row, caption in zip(canvas.words(pairs("train", 60, 3)[0]), pairs("train", 60, 3)[0])
    }
    said = [words[tuple(row.tolist())] for row in clean[:, :16]]
    assert bool((checked(said, canvas.picture(clean)) == 1).all())
    assert int(seen(canvas.picture(clean)).max()) < 49
