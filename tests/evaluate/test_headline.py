"""The pair of pipelines: what only one solves, by category, and one checkpoint under two rules."""

import pytest
import torch

from dprm.evaluate.headline import headline, pairs
from dprm.evaluate.study import Condition
from dprm.host.host import Problems
from tests.evaluate.test_diagnostics import rollout
from tests.toy_host import ToyHost

FAST, PLAIN = Condition("dprm", "learned top_m", 2), Condition("confidence", "confidence", 2)
SAME, SOFT = Condition("dprm", "confidence", 2), Condition("dprm", "learned soft_bon", 2)
SURE = [[0.9, 0.9, 0.9, 0.9]] * 4


class Audited(ToyHost):
    audit = {}  # noqa: RUF012


def answers(solved, steps=(1, 2, 3, 4), token=1):
    """Four answers, some of which are solved."""
    return [rollout([[token] * 4] * 4, [list(steps)] * 4, SURE, [float(each) for each in solved])]


RUNS = {
    FAST: answers((1, 1, 0, 1), (4, 3, 2, 1)),
    PLAIN: answers((1, 0, 1, 0)),
    SAME: answers((1, 1, 0, 0)),
    SOFT: answers((1, 1, 0, 0), token=0),
}
PROBLEMS = Problems(torch.full((4, 4), 2), torch.arange(4), list("aabb"))


def told():
    return headline(Audited(), PROBLEMS, FAST, PLAIN, RUNS, "confidence", categories=lambda facts: (facts, "every"))


def test_the_first_learned_order_of_an_arm_is_set_against_the_hosts_own_after_the_other_training():
    others = [Condition("random", "confidence", 2), Condition("dprm", "learned top_m", 3)]
    assert pairs([*others, PLAIN, SAME, FAST, SOFT], "confidence") == [(FAST, PLAIN)]
    assert pairs([FAST, SAME], "confidence") == []


def test_wins_are_counted_and_drawn():
    facts = told()
    assert (facts["treated_only"], facts["control_only"]) == (2, 1)
    assert facts["delta"] == pytest.approx(0.25)
    assert [each["treated"]["reward"] for each in facts["wins"]] == [1.0, 1.0]
    assert facts["wins"][0]["control"]["steps"] == "1 2 3 4"
    assert facts["shown"] == {"1": "1"}


def test_categories_may_overlap():
    categories = told()["categories"]
    assert {name: each["problems"] for name, each in categories.items()} == {"a": 2, "b": 2, "every": 4}
    assert categories["a"]["delta"] == pytest.approx(0.5)
    assert categories["every"]["delta"] == told()["delta"]


def test_one_checkpoint_under_two_rules_says_what_decoding_does():
    found = {each["order"]: each for each in told()["same_checkpoint"]}
    assert found["learned top_m"]["same"] == 1.0
    assert found["learned soft_bon"]["same"] == 0.0
    assert found["learned top_m"]["delta"] == pytest.approx(0.25)


def test_the_audit_is_told_inside_the_wins_as_well():
    audit = told()["audit"]
    assert audit["returns"]["all"]["delta"] == 1.0
    assert audit["returns"]["wins"]["delta"] == 1.0
    assert audit["adjacency"]["all"]["delta"] == 0.0
