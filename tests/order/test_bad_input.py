"""Every bad input is an error that names argument, row and value, before anything is done."""

import pytest
import torch

import dprm

READING = dprm.read(torch.zeros(2, 3, 4))
EVERY = torch.ones(2, 3, dtype=torch.bool)


def with_confidence(value):
    confidence = READING.confidence.clone()
    confidence[1, 2] = value
    return dprm.Reading(READING.tokens, confidence, READING.margin, READING.entropy)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"reading": with_confidence(1.5)}, ValueError, r"confidence\[row 1, position 2\] is 1.5"),
        ({"reading": with_confidence(-0.25)}, ValueError, r"confidence\[row 1, position 2\] is -0.25"),
        ({"reading": with_confidence(float("nan"))}, ValueError, r"confidence\[row 1, position 2\] is nan"),
        ({"candidates": EVERY[:1]}, ValueError, r"candidates has shape \(1, 3\): expected \(2, 3\)"),
        ({"candidates": EVERY.int()}, TypeError, "candidates has type torch.int32: expected bool"),
        ({"budget": -1}, ValueError, "budget is -1: expected at least 0"),
        ({"budget": 1.5}, TypeError, "budget is 1.5: expected a whole number"),
        ({"budget": torch.tensor([1, -2])}, ValueError, r"budget\[row 1\] is -2: a budget is not negative"),
        ({"budget": torch.tensor([1, 2, 3])}, ValueError, r"budget has shape \(3,\)"),
        ({"budget": torch.tensor([1.0, 2.0])}, TypeError, "budget has type torch.float32: expected integers"),
        ({"progress": 1.2}, ValueError, r"progress is 1.2: expected a share in \[0, 1\]"),
        ({"progress": float("nan")}, ValueError, "progress is nan"),
        ({"progress": torch.tensor([0.1, float("nan")])}, ValueError, r"progress\[row 1\] is nan"),
        ({"progress": torch.tensor([0.1])}, ValueError, r"progress has shape \(1,\)"),
        ({"aux": torch.tensor([[0, 1, 2], [0, 0, 3]])}, ValueError, r"aux\[row 1, position 2\] is 3"),
        ({"aux": torch.tensor([[0, -1, 2], [0, 0, 0]])}, ValueError, r"aux\[row 0, position 1\] is -1"),
        ({"aux": torch.zeros(2, 2, dtype=torch.int64)}, ValueError, r"aux has shape \(2, 2\)"),
        ({"aux": torch.zeros(2, 3)}, TypeError, "aux has type torch.float32"),
        ({"seed": torch.tensor([1, 2, 3])}, ValueError, r"seed has shape \(3,\)"),
        ({"seed": 1.5}, TypeError, "seed is 1.5"),
        ({"step": "soon"}, TypeError, "step is 'soon'"),
    ],
)
@pytest.mark.parametrize("rule", ["top_m", "shortlist_top_m", "soft_bon"])
def test_select_names_what_is_wrong(rule, change, error, message):
    order = dprm.Order(aux=3, rule=rule, explore=True)
    call = {"reading": READING, "candidates": EVERY, "budget": 1, "progress": 0.5, **change}
    with pytest.raises(error, match=message):
        order.select(**call)
    assert order.stats is None
    assert order.step == 0


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"beta": 0}, ValueError, r"beta is 0: expected a finite number in \(0"),
        ({"beta": 2**64}, ValueError, r"beta is 18446744073709551616: no tensor holds"),
        ({"beta": float("inf")}, ValueError, "beta is inf"),
        ({"guidance": -1}, ValueError, "guidance is -1"),
        ({"phases": 0}, ValueError, "phases is 0: expected at least 1"),
        ({"bins": 2.5}, TypeError, "bins is 2.5: expected a whole number"),
        ({"aux": -1}, ValueError, "aux is -1"),
        ({"phases": 2**20, "bins": 2**12}, ValueError, "cells: at most"),
        ({"warm": 5, "switch": 2}, ValueError, "switch is 2: the full switch cannot come before warm = 5"),
        ({"ready": 0}, ValueError, "ready is 0"),
        ({"rule": "greedy"}, ValueError, "rule is 'greedy': expected one of top_m, shortlist_top_m, soft_bon"),
        ({"baseline": "mean"}, ValueError, "baseline is 'mean'"),
        ({"shortlist": (8, 4, 1)}, ValueError, r"shortlist\[1\] is 4: expected at least 8"),
        ({"shortlist": 8}, TypeError, "shortlist is 8"),
        ({"reward_range": (1.0, 1.0)}, ValueError, r"reward_range\[1\] is 1.0"),
        ({"reward_range": 1.0}, TypeError, "reward_range is 1.0"),
        ({"forget": 1.5}, ValueError, "forget is 1.5"),
    ],
)
def test_an_order_names_the_setting_that_is_wrong(setting, error, message):
    with pytest.raises(error, match=message):
        dprm.Order(**setting)


def test_an_empty_batch_and_an_empty_canvas_choose_nothing():
    for shape in ((0, 5, 3), (3, 0, 3)):
        reading = dprm.read(torch.zeros(shape))
        for rule in ("top_m", "shortlist_top_m", "soft_bon"):
            order = dprm.Order(rule=rule, explore=True)
            assert order.select(reading, torch.ones(shape[:2], dtype=torch.bool), 2, 0.5).mask.shape == shape[:2]
