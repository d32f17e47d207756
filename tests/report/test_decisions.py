"""Maps show where an order parts from the reference; one that never does has nothing to show."""

import dataclasses

import torch

from dprm.evaluate.replays import Parting
from dprm.report.colours import LEARNED
from dprm.report.decisions import decisions


def test_an_order_that_never_parts_from_the_reference_has_no_map_but_stays_in_the_tables(card):
    moved = card.partings["random"]
    still = dataclasses.replace(moved, moved=[" ".join("0" * 8)] * 8, together=[card.count] * 11)
    three = dataclasses.replace(card, partings={"echo": still, "random": moved, "second echo": still})
    section = decisions(three, dict.fromkeys(three.partings, LEARNED))
    maps = [figure.caption for figure in section.figures[1:]]
    assert len(maps) == 1
    assert maps[0].startswith("random: ")
    assert section.lead.endswith("Never apart from confidence: echo, second echo.")
    for table in section.tables:
        assert {row[0] for row in table.rows} == {"echo", "random", "second echo"}


def test_a_map_is_drawn_where_it_tells_cells_apart_and_of_the_learned_order_alone(card):
    """Half of the reveals of one row moved, none of the others; or all of them everywhere."""
    counts = torch.full((8, 8), 10)
    reveals = [" ".join(map(str, row)) for row in counts.tolist()]
    telling, same = counts.clone(), counts.clone()
    telling[1:] = 0
    for moved, colour, maps in ((telling, LEARNED, 1), (same, LEARNED, 0), (telling, "red", 0)):
        lines = [" ".join(map(str, row)) for row in moved.tolist()]
        parting = Parting([card.count] * 11, reveals=reveals, moved=lines)
        section = decisions(dataclasses.replace(card, partings={"random": parting}), {"random": colour})
        assert len(section.figures) == 1 + maps
        assert "Never apart" not in section.lead
