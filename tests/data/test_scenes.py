"""The world of scenes: the same for a seed, disjoint between splits, and every shape can be told from every other."""

import pytest
import torch

from dprm.data import scenes as world
from dprm.data.splits import SPLITS


def test_splits_share_no_scene_and_a_seed_gives_the_same_ones():
    drawn = {split: world.scenes(split, 300, seed=1) for split in SPLITS}
    assert all(len(set(listed)) == 300 for listed in drawn.values())
    assert len(set().union(*map(set, drawn.values()))) == 1200
    assert world.scenes("test", 300, seed=1) == drawn["test"]
    assert world.scenes("test", 100, seed=1) == drawn["test"][:100]
    assert world.scenes("test", 300, seed=2) != drawn["test"]


def test_a_scene_and_its_grid_say_the_same():
    grids = world.grids("fit", 200)
    for grid, scene in zip(grids, world.scenes("fit", 200), strict=True):
        assert torch.equal(scene.grid, grid)
    twice = world.Item(0, 0, 0, 1, 1)
    with pytest.raises(ValueError, match="two items in row 1, column 1"):
        _ = world.Scene((twice, twice)).grid


@pytest.mark.parametrize("side", [16, 32])
def test_every_content_of_a_cell_looks_different(side):
    contents = torch.arange(1 + len(world.SHAPES) * len(world.COLOURS) * len(world.SIZES))
    grid = torch.zeros(len(contents), 9, dtype=torch.uint8)
    grid[:, 4] = contents
    pictures = world.drawn(grid, side)
    assert pictures.shape == (len(contents), side, side)
    assert len(pictures.flatten(1).unique(dim=0)) == len(contents)


def test_shapes_stay_in_their_cells():
    corner = world.Scene((world.Item(1, 0, 1, 0, 0),))
    picture = world.codes(corner, 16)
    assert int((picture[:6, :6] > 0).sum()) == int((picture > 0).sum()) == 16
    assert world.pixels(picture).shape == (16, 16, 3)


def test_bad_sides_and_splits_are_named():
    with pytest.raises(ValueError, match="side is 20"):
        world.codes(world.Scene(()), 20)
    with pytest.raises(ValueError, match="split is 'dev'"):
        world.scenes("dev", 1)
