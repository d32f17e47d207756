"""A study page: one figure for every order and width of all problems, and every number in a table."""

from dprm.evaluate.study import Study
from dprm.report.trainings import trainings
from tests.report.drawn import words

ARMS = ("random", "dprm")
LEARNED = ("learned top_m", "learned soft_bon")


def entry(arm, order, width=1, part="all", **more):
    return {"arm": arm, "order": order, "width": width, "part": part, "solved": 0.5, "low": 0.4, "high": 0.6, **more}


def study(*results, audit=()):
    arms = {arm: {} for arm in ARMS}
    return Study("toy", "test", {}, 40, 0, 5000, arms, list(results), [], "dprm study toy", audit=list(audit))


def section(*results, **more):
    return trainings(study(*results, **more), dict.fromkeys((*ARMS, "confidence", *LEARNED), "red"))


def test_trainings_stand_together_for_every_order_and_width_of_all_problems():
    results = [entry(arm, "confidence", width, part) for arm in ARMS for width in (1, 2) for part in ("all", "hard")]
    captions = [figure.caption for figure in section(*results).figures]
    assert captions == [f"Share solved by training, decoded by confidence, {width} a step." for width in (1, 2)]
    assert len(section(*results).tables[0].rows) == 8


def test_orders_that_one_training_has_alone_share_a_figure():
    both = [entry(arm, "confidence") for arm in ARMS]
    first, second = section(*both, *(entry("dprm", order) for order in LEARNED)).figures
    assert set(ARMS) <= set(words(first))
    assert second.caption == "Share solved after dprm, by orders that no other training has, 1 a step."
    assert set(LEARNED) <= set(words(second))


def test_where_answers_were_sampled_mean_pass_at_k_is_drawn():
    interval = {"estimate": 0.7, "low": 0.65, "high": 0.75}
    (figure,) = section(*(entry(arm, "confidence", unbiased=interval, first=interval) for arm in ARMS)).figures
    assert "mean pass@K" in words(figure)
    assert figure.caption.startswith("Mean pass@K by training")


def test_an_older_study_without_orders_has_one_figure_of_its_arms():
    older = [{"arm": arm, "part": "all", "unbiased": {"estimate": 0.7, "low": 0.6, "high": 0.8}} for arm in ARMS]
    (figure,) = section(*older).figures
    assert set(ARMS) <= set(words(figure))


def test_cells_hold_intervals_calls_by_kind_and_differences_of_the_audit():
    delta = {"mean": 0.25, "delta": -0.5, "delta_low": -0.75, "delta_high": 0.0}
    shown = section(
        entry("dprm", "confidence", calls={"denoiser": 4.0}, spread=None),
        audit=[{"arm": "dprm", "span": delta}, {"arm": "random", "span": {"mean": 0.25}}],
    )
    conditions, audit = shown.tables
    cells = dict(zip(conditions.columns, conditions.rows[0]))
    assert (cells["calls"], cells["spread"]) == ("denoiser 4.000", "–")
    assert [row[1] for row in audit.rows] == ["0.250; -0.500 [-0.750, +0.000]", "0.250"]
