"""A ready-made host with three benefits: what is learned depends on the preference, what is judged does not."""

import pytest
import torch

import dprm
from dprm.evaluate.arms import arms_of
from dprm.evaluate.compare import compare
from dprm.fit import Run, estimator, fit
from dprm.fit.branching import Branching
from dprm.host.host import SPLITS
from dprm.host.rollout import Decode
from tests.host.life import lived

LENGTH, MASK = 6, 2


# ---- the host --------------------------------------------------------------------------------------------------------


def model(tokens):
    """A bit is 1 if all to its left are visible when it is revealed, and 0 otherwise; the surest are the last."""
    hidden = tokens == MASK
    sure = 1.0 + 0.2 * torch.arange(LENGTH)
    one = torch.where(hidden.cumsum(1) - hidden.long() == 0, sure, -sure)
    return torch.stack([torch.zeros_like(one), one], dim=2)


def judged(tokens, facts):
    ones = (tokens == 1).double().mean(1)
    return torch.stack([ones, 1 - ones, (tokens[:, 1:] == tokens[:, :-1]).double().mean(1), ones == 1], dim=1)


def host(preference="ones=0.6,zeros=0.2,alike=0.2"):
    names = {split: [f"{split} {number}" for number in range(200 + 400 * (split == "fit"))] for split in SPLITS}
    return dprm.make_host(
        "three wishes",
        model,
        mask_id=MASK,
        problems={split: [([MASK] * LENGTH, name) for name in listed] for split, listed in names.items()},
        reward=judged,
        batched=True,
        metrics=("ones", "zeros", "alike", dprm.Metric("solved", role="held out")),
        preference=dprm.Preference.read(preference),
    )


# ---- what is true of it ----------------------------------------------------------------------------------------------


def test_it_is_fitted_compared_and_judged(tmp_path):
    learned = lived(host(), tmp_path, "head", calls=9000)
    card = learned.card
    assert str(card.preference) == learned.policy.notes["preference"] == "ones=0.6,zeros=0.2,alike=0.2"
    means = {name: {metric: value.mean for metric, value in arm.metrics.items()} for name, arm in card.arms.items()}
    # By the host's order 100000 is written; from left to right it would be 111111.
    assert means["confidence"] == pytest.approx({"ones": 1 / 6, "zeros": 5 / 6, "alike": 0.8, "solved": 0.0})
    assert means["dprm"]["ones"] > 0.8
    # The reward is what the preference makes of the benefits.
    for name, arm in card.arms.items():
        earned = 0.6 * means[name]["ones"] + 0.2 * means[name]["zeros"] + 0.2 * means[name]["alike"]
        assert arm.mean == pytest.approx(earned)
    assert card.verdict["verdict"] == "apply"


def test_two_kinds_of_preference_pay_differently_for_the_same_answer():
    tokens = torch.tensor([[1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
    weights = [0.6, 0.2, 0.2]
    for kind in ("weighted", "tchebycheff"):
        wishes = host(("tchebycheff:" if kind == "tchebycheff" else "") + "ones=0.6,zeros=0.2,alike=0.2")
        scores = wishes.scores(wishes.problems("test", 2), tokens)
        by_hand = dprm.scalarize(scores[:, :3], weights, kind=kind)
        assert torch.equal(wishes.reward(scores), by_hand.reward.double())
        assert wishes.reward_range == by_hand.reward_range


def test_whoever_prefers_what_the_host_does_keeps_its_order(tmp_path):
    learned = lived(host("zeros=0.8,ones=0.2"), tmp_path, "head", calls=2000)
    assert learned.policy.guidance == 0.0
    assert learned.account.taken is None
    assert learned.card.verdict["verdict"] == "fall back"


def test_fits_of_two_preferences_share_what_was_decoded(tmp_path, monkeypatch):
    result, decodings = Decode.result, []
    monkeypatch.setattr(Decode, "result", lambda self, *given: decodings.append(given) or result(self, *given))
    for preference, reward in (("ones=1", 1 / 6), ("zeros=0.5,alike=0.5", 0.5 * 5 / 6 + 0.5 * 0.8)):
        run = Run(host(preference), 500, tmp_path)
        rewards = run.rewards(host().decoding.order(), run.take(20))
        assert rewards.tolist() == pytest.approx([reward] * 20)
        assert run.cost.calls == 20 * LENGTH  # Either has to count them.
    assert len(decodings) == 1


def test_rewards_of_different_ranges_share_branches_and_decodings(tmp_path, monkeypatch):
    """Neither depends on what answers are worth; only what is made of them does."""
    collect, branched = Branching.collect, []
    monkeypatch.setattr(Branching, "collect", lambda self, *given: branched.append(given) or collect(self, *given))
    result, decodings = Decode.result, []
    monkeypatch.setattr(Decode, "result", lambda self, *given: decodings.append(given) or result(self, *given))
    means, asked = [], []
    for preference in ("tchebycheff:ones=0.8,zeros=0.2", "tchebycheff:ones=0.3,zeros=0.7"):
        mine = host(preference)
        fit(estimator("branched"), mine, calls=3000, folder=tmp_path / "fit")
        card = compare(mine, mine.problems("select", 8), arms_of(mine, ["random"]), resamples=20, folder=tmp_path).card
        means.append(card.arms["random"].mean)
        asked.append((len(branched), len(decodings)))
    assert asked[0][0] > 0
    assert asked[0][1] > 0
    assert asked[1] == asked[0]
    assert means[0] != means[1]


def test_what_is_learned_depends_on_the_preference():
    policies = [
        fit(estimator("onpolicy", prompts=8), host(preference), calls=400).policy
        for preference in ("ones=1", "zeros=1")
    ]
    assert policies[0].digest != policies[1].digest


@pytest.mark.parametrize(
    ("preference", "message"),
    [
        ("solved=1", "preference weighs 'solved': expected benefits among ones, zeros, alike"),
        ("speed=1", "preference weighs 'speed': expected benefits among ones, zeros, alike"),
        ("ones=1,zeros=1", "weights"),
        ("ones", "preference is 'ones': expected BENEFIT=WEIGHT, with commas"),
        ("best:ones=1", "kind is 'best'"),
    ],
)
def test_preferences_that_do_not_fit_are_named(preference, message):
    with pytest.raises(ValueError, match=message):
        host(preference)


def test_scores_that_do_not_fit_are_named():
    plain = host()
    problems, tokens = plain.problems("test", 3), torch.ones(3, LENGTH, dtype=torch.int64)
    assert plain.scores(problems, tokens).tolist() == [[1, 0, 1, 1]] * 3
    for scores, message in [
        (torch.zeros(3, 3), r"judge gave scores \(3, 3\): expected \(3, 4\) for ones, zeros, alike, solved"),
        (torch.tensor([[0.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0]]), r"score of zeros\[row 1\] is 2"),
        (torch.full((3, 4), torch.nan), r"score of ones\[row 0\] is nan"),
    ]:
        plain.judge = lambda problems, tokens, scores=scores: scores
        with pytest.raises(ValueError, match=message):
            plain.scores(problems, tokens)


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        ({"kinds": float("nan")}, r"judge_set\['kinds'\] is nan: expected a finite number in \[0, 1\]"),
        ({"kinds": 2.0}, r"judge_set\['kinds'\] is 2.0"),
        ({}, "judge_set gave nothing: expected kinds as well"),
    ],
)
def test_metrics_of_the_set_that_do_not_fit_are_named(judged, message):
    plain = host()
    plain.metrics = (*plain.metrics, dprm.Metric("kinds", role="set"))
    plain.judge_set = lambda problems, tokens: judged
    with pytest.raises(ValueError, match=message):
        compare(plain, plain.problems("test", 3), arms_of(plain, ()))
