"""Maps show where an order parts from the reference; one that never does has nothing to show."""

import dataclasses

import torch

from dprm.evaluate.replays import Parting
from dprm.report.decisions import decisions


def test_an_order_that_never_parts_from_the_reference_has_no_map_but_stays_in_the_tables(card):
    moved = card.partings["random"]
    still = dataclasses.replace(moved, moved=[" ".join("0" * 8)] * 8, together=[card.count] * 11)
    three = dataclasses.replace(card, partings={"echo": still, "random": moved, "second echo": still})
    section = decisions(three, dict.fromkeys(three.partings, "red"))
    maps = [figure.caption for figure in section.figures[1:]]
    assert len(maps) == 1
    assert maps[0].startswith("random: ")
    assert section.lead.endswith("Never apart from confidence, and without a map: echo, second echo.")
    for table in section.tables:
        assert {row[0] for row in table.rows} == {"echo", "random", "second echo"}


def test_one_moved_reveal_is_enough_for_a_map(card):
    counts = torch.zeros(8, 8, dtype=torch.int64)
    counts[7, 3] = 1
    once = [" ".join(map(str, row)) for row in counts.tolist()]
    hardly = Parting([card.count] * 11, reveals=card.partings["random"].reveals, moved=once)
    section = decisions(dataclasses.replace(card, partings={"random": hardly}), {"random": "red"})
    assert len(section.figures) == 2
    assert "Never apart" not in section.lead
