"""Diaries of trainings, drawn: a figure for what was logged, and none for what was not."""

from dprm.evaluate.study import Study
from dprm.report.diaries import BIN, diaries
from tests.report.drawn import words

DIARY = {"step": [8, 16], "reward": [0.25, 0.5], "spread": [0.25, 0.125], "early": [1.5, 1.0], "radius": [None, 2.0]}


def study(**arms):
    return Study("toy", "test", {}, 40, 0, 5000, arms, [], [], "dprm study toy")


def test_every_quantity_that_was_logged_has_a_figure():
    told = study(start={}, random={"diary": DIARY}, dprm={"diary": {**DIARY, f"{BIN}3": [0.5, 0.25]}})
    section = diaries(told, dict.fromkeys(("random", "dprm"), "red"))
    captions = [figure.caption for figure in section.figures]
    assert captions[0].startswith("Reward of the rollouts; bands")
    assert [caption.split()[0] for caption in captions[1:]] == ["Cross-entropy", "Median", "Mean"]
    assert {"random", "dprm"} <= set(words(section.figures[0]))
    assert section.tables[0].rows[0][:4] == ["random", "16", "0.5", "0.125"]


def test_a_study_without_diaries_has_no_section():
    assert diaries(study(random={}, dprm={"diary": {}}), {}) is None
