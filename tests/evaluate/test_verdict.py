"""The verdict: every rule, in the order in which they are asked."""

from dataclasses import replace

import pytest

from dprm.evaluate.card import Arm, Card
from dprm.evaluate.verdict import VERDICTS, judge, judge_cards, judge_policy, lower_end, policies
from dprm.host.metrics import Metric

REFERENCE = Arm(0.5, 0.48, 0.52, nfe=28.0, seconds=0.1)
GAIN = replace(
    REFERENCE,
    mean=0.53,
    delta=0.03,
    delta_low=0.01,
    delta_high=0.05,
    changed=0.3,
    ready=0.9,
    gate=0.95,
    policy="digest",
    differs=0.4,
    guidance=1.0,
)


def card(split="test", **arms):
    """A card of the reference and these arms; every policy has a control that loses, unless one is given."""
    named = {name.replace("_", " "): arm for name, arm in arms.items()}
    controls = {}
    for name, arm in named.items():
        if arm.policy and arm.ablates is None:
            loses = replace(arm, delta=-0.01, delta_low=-0.03, ablates=name, gap=0.04, gap_low=0.02, gap_high=0.06)
            controls[f"{name}, shuffled values"] = loses
    return Card(
        host="toy",
        split=split,
        problems="",
        count=2000,
        groups=2000,
        decoding={"count": "1"},
        metrics=[Metric("reward")],
        seeds=[0],
        resamples=5000,
        reference="confidence",
        arms={"confidence": REFERENCE, **controls, **named},
    )


def shuffled(delta, low, gap, gap_low):
    """The arm of shuffled values of a policy named `dprm`, as keyword arguments of `card`."""
    arm = replace(GAIN, delta=delta, delta_low=low, ablates="dprm", gap=gap, gap_low=gap_low, gap_high=gap + 0.02)
    return {"dprm,_shuffled_values": arm}


def test_a_significant_gain_at_equal_calls_is_applied():
    verdict = judge(card(dprm=GAIN))
    assert (verdict.verdict, verdict.arm) == ("apply", "dprm")
    assert "difference to confidence: +0.030 [+0.010, +0.050] on 2,000 problems of test" in verdict.evidence
    assert "outputs: 40.0% differ from those of confidence" in verdict.evidence


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        ({"guidance": 0.0}, "fall back", "the policy is the host's own order"),
        ({"changed": 0.0, "differs": 0.0}, "fall back", "the policy is the host's own order"),
        ({"differs": 0.0}, "do not promote", "decisions change, outputs do not"),
        ({"delta": -0.03, "delta_low": -0.05, "delta_high": -0.01}, "do not promote", "a significant loss"),
        ({"delta_low": 0.0}, "fall back", "no gain on test"),
        ({"delta_low": -0.01, "ready": 0.2}, "fall back", "no gain on test; the table is sparse"),
        ({"ready": 0.2}, "fall back", "a gain, but the table is sparse: 20% of the decisions in ready cells"),
        (
            {"diagnostics": {"settled": 0.1}},
            "fall back",
            "a gain, but 10% of the evidence is for values larger than they can be off",
        ),
        ({"nfe": 49.28}, "report rollout cost", "a gain at 1.76 times the model calls"),
        ({"fit": {"estimator": "montecarlo"}}, "report rollout cost", "a gain at 1.00 times the model calls"),
        ({"nfe": 20.0}, "apply", "a significant gain at equal model calls"),
        ({"differs": None}, "apply", "a significant gain at equal model calls"),
    ],
)
def test_every_rule_decides_where_it_should(change, verdict, reason):
    found = judge(card(dprm=replace(GAIN, **change)))
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.verdict in VERDICTS


@pytest.mark.parametrize("split", ["select", "fit"])
def test_a_gain_where_policies_are_chosen_is_not_a_test(split):
    found = judge(card(split, dprm=GAIN))
    assert (found.verdict, found.reason) == ("fall back", f"a gain on {split}, not yet tested")


def test_shuffled_values_that_do_as_well_mean_aliasing():
    better = judge(card(dprm=GAIN, **shuffled(0.031, -0.01, -0.001, -0.02)))
    assert (better.verdict, better.reason) == ("fall back", "aliased: shuffled values do as well")
    gains_too = judge(card(dprm=GAIN, **shuffled(0.025, 0.005, 0.005, -0.01)))
    assert gains_too.verdict == "fall back"
    worse = judge(card(dprm=GAIN, **shuffled(-0.01, -0.03, 0.04, 0.02)))
    assert worse.verdict == "apply"
    assert "shuffled values: difference -0.010; the policy minus it +0.040 [+0.020, +0.060]" in worse.evidence


def test_a_gain_without_a_control_of_its_values_is_not_applied():
    alone = card(dprm=GAIN)
    del alone.arms["dprm, shuffled values"]
    found = judge(alone)
    assert found.verdict == "fall back"
    assert found.reason == "a gain without a control of its values: compare with --ablate"


@pytest.mark.parametrize("poorer", ["no states", "no phases"])
def test_poorer_cells_that_do_better_are_no_reason_to_apply_the_richer_ones(poorer):
    def with_poorer(gap, low, high):
        arm = replace(GAIN, delta=0.03 - gap, ablates="dprm", gap=gap, gap_low=low, gap_high=high)
        return judge(card(dprm=GAIN, **{f"dprm, {poorer}": arm}))

    better = with_poorer(-0.02, -0.03, -0.01)
    assert (better.verdict, better.reason) == ("fall back", f"a gain, but poorer cells do better: {poorer}")
    assert f"{poorer}: difference +0.050; the policy minus it -0.020 [-0.030, -0.010]" in better.evidence
    assert with_poorer(-0.01, -0.03, 0.01).verdict == "apply"
    assert with_poorer(0.02, 0.01, 0.03).verdict == "apply"


def test_the_verdict_says_how_often_the_problems_were_looked_at():
    shown = card(dprm=GAIN)
    assert not any("looks at" in line for line in judge(shown).evidence)
    for looks, line in [(0, "none"), (3, "3; a split that is looked at again and again chooses")]:
        shown.notes = {"looks": {"dprm": looks}}
        assert f"looks at test before this one: {line}" in judge(shown).evidence


def test_ablations_and_signals_are_not_policies():
    both = card(dprm=GAIN, random=REFERENCE, **shuffled(0.5, 0.4, -0.4, -0.5))
    assert policies(both) == ["dprm"]
    nothing = judge(card(random=REFERENCE))
    assert (nothing.verdict, nothing.arm, nothing.evidence) == ("fall back", None, ())


def test_several_policies_on_one_test_split_widen_their_intervals():
    assert lower_end(GAIN) == GAIN.delta_low
    assert lower_end(GAIN, 4) == pytest.approx(0.03 - 0.02 * 2.4977 / 1.95996, abs=1e-5)
    narrow = replace(GAIN, delta_low=0.004)
    assert judge(card(dprm=narrow)).verdict == "apply"
    four = card(dprm=narrow, two=narrow, three=narrow, four=narrow)
    assert judge(four).verdict == "fall back"
    with pytest.raises(ValueError, match="this arm is the reference"):
        lower_end(REFERENCE)


def test_the_policy_that_can_be_used_speaks_for_the_card():
    loss = replace(GAIN, delta=-0.1, delta_low=-0.2, delta_high=-0.05)
    assert judge(card(loss=loss, dprm=GAIN)).arm == "dprm"
    zero = replace(GAIN, delta=0.0, delta_low=-0.01, delta_high=0.01)
    assert judge(card(loss=loss, zero=zero)).arm == "zero"


def test_a_costly_order_must_beat_as_many_paths_of_the_reference():
    costly = replace(GAIN, nfe=56.0)
    control = replace(REFERENCE, nfe=56.0, fit={"control": "best of 2"})
    weak = card(dprm=costly, control=replace(control, mean=0.51))
    assert judge(weak).verdict == "report rollout cost"
    assert "best of 2: mean 0.510 at 56.0 calls, the policy 0.530" in judge(weak).evidence
    strong = judge(card(dprm=costly, control=replace(control, mean=0.6)))
    assert (strong.verdict, strong.reason) == ("fall back", "the reference does as well at equal model calls")
    larger = card(dprm=costly, control=replace(control, mean=0.6, nfe=84.0))
    assert judge(larger).verdict == "report rollout cost"


def test_the_cost_of_a_fit_is_evidence():
    fit = {"estimator": "branched", "rollouts": "64", "branches": "10000", "calls": "250000"}
    line = "the fit took 250,000 model calls: 64 rollouts, 10,000 branches"
    assert line in judge_policy(card(dprm=replace(GAIN, fit=fit)), "dprm").evidence
    back = "the fit took 250,000 model calls: 64 rollouts, 10,000 branches (3,000 came back)"
    assert back in judge_policy(card(dprm=replace(GAIN, fit={**fit, "rejoined": "3000"})), "dprm").evidence
    assert not any("the fit took" in text for text in judge(card(dprm=GAIN)).evidence)


def test_equal_outputs_bound_how_many_others_there_can_be():
    (line,) = [text for text in judge(card(dprm=replace(GAIN, differs=0.0))).evidence if text.startswith("outputs")]
    assert line == "outputs: all 2,000 exactly as under confidence (at most 0.15% others)"
    few = card(dprm=replace(GAIN, differs=0.0, delta=0.0, delta_low=0.0, delta_high=0.0))
    few.count = 59
    assert judge(few).reason == "no gain on test"
    few.count = 60
    assert judge(few).reason == "decisions change, outputs do not"


def test_a_host_is_judged_by_its_tests_first_and_all_its_policies_count():
    no_gain = replace(GAIN, delta_low=-0.01)
    select, test = card("select", dprm=no_gain), card(dprm=GAIN)
    verdict, each = judge_cards({"select.json": select, "test.json": test})
    assert verdict.verdict == "apply"
    assert each["select.json"].verdict == "fall back"
    narrow = card(dprm=replace(GAIN, delta_low=0.002))
    assert judge_cards({"1.json": narrow})[0].verdict == "apply"
    assert judge_cards({"1.json": narrow, "2.json": narrow})[0].verdict == "fall back"
    assert judge_cards({"select.json": select})[0].reason == "no gain on select"
    assert judge_cards({})[0].reason == "there is no result card"
