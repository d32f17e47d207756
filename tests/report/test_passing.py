"""Captions of pass@K say which problems, not how many."""

import pytest

from dprm.evaluate.study import Study
from dprm.report.passing import passing


def study(*parts):
    curve = {"1": 0.2, "4": 0.5, "mean": 0.35}
    passk = {"start": {part: {"unbiased": curve, "first": curve} for part in parts}}
    return Study("toy", "test", {}, 40, 0, 5000, {"start": {}}, [], [], "dprm study toy", passk=passk)


@pytest.mark.parametrize(
    ("part", "caption", "cell"),
    [("3", "pass@K on problems of size 3.", "size 3"), ("hard", "pass@K on hard problems.", "hard")],
)
def test_a_number_is_a_size_and_a_name_is_a_name(part, caption, cell):
    section = passing(study(part), {"start": "red"})
    assert [figure.caption for figure in section.figures] == [caption]
    assert {row[1] for row in section.tables[0].rows} == {cell}


def test_a_study_without_samples_has_no_curves():
    assert passing(study(), {}) is None
