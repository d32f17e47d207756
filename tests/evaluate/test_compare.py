"""Comparing ways of answering, resuming, and the card."""

import json
from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode.counts import Fixed
from dprm.evaluate.arms import arms_of
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from dprm.evaluate.estimates import judged_again
from dprm.evaluate.outcomes import Outcomes, beside
from dprm.fit import MonteCarlo
from dprm.fit.seen import FITTED, SELECTED, first_seen, sketch
from dprm.host.host import Problems
from dprm.order import Stats
from dprm.order.features import names
from dprm.order.head import Head
from tests.draws import taught
from tests.toy_host import ToyHost

HOST = ToyHost()
ARMS = arms_of(HOST, ("random",))


def without_seconds(card):
    data = json.loads(card.to_json())
    for arm in data["arms"].values():
        del arm["seconds"], arm["time_ratio"]
    return data


def learned():
    """A table that knows the way to 1111."""
    order = dprm.Order(phases=4, bins=16, beta=2.0, ready=1)
    stats = Stats(order.cells, 2.0, (-1.0, 1.0), centred=True)
    # In the first phase the positions of confidence .58 lead to 1111, that of .70 to 0000.
    stats.add(torch.tensor([9, 9, 11, 11]), torch.tensor([0.9, 0.9, -0.9, -0.9]))
    order.merge(stats)
    return order.policy()


def test_arms_are_paired_on_the_same_problems_at_the_same_calls():
    comparison = compare(HOST, HOST.problems("test", 200), ARMS)
    arms = comparison.card.arms
    assert comparison.card.reference == "confidence"
    assert arms["confidence"].delta is None
    assert arms["random"].delta == pytest.approx(arms["random"].mean - arms["confidence"].mean)
    assert arms["random"].delta_low > 0.6
    assert arms["confidence"].nfe == arms["random"].nfe == 4
    assert arms["random"].metrics["reward"].mean == arms["random"].mean
    assert arms["random"].policy is None


def test_the_reference_is_the_hosts_own_order_whatever_that_is():
    host = HOST.with_decoding(signal=dprm.order.SIGNALS["entropy"]())
    arms = arms_of(host, ("confidence", "entropy"))
    assert list(arms) == ["entropy", "confidence"]
    assert arms["entropy"].order is None
    with pytest.raises(ValueError, match="policies has 'confidence', the name of a signal"):
        arms_of(HOST, (), {"confidence": learned()})


def test_a_learned_order_reports_what_it_changed_and_trusted():
    policy = taught(dprm.Order(ready=200), 1).policy()
    arm = compare(HOST, HOST.problems("test", 20), arms_of(HOST, (), {"dprm": policy})).card.arms["dprm"]
    assert arm.gate == pytest.approx(0.5)
    assert arm.ready == 0.0
    assert arm.policy == policy.digest


def test_a_killed_comparison_goes_on_and_ends_in_the_same_card(tmp_path):
    problems = HOST.problems("test", 30)
    whole = compare(HOST, problems, ARMS, rows=7).card
    calls = []

    def kill(name, count):
        calls.append((name, count))
        if len(calls) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(HOST, problems, ARMS, rows=7, folder=tmp_path, on_batch=kill)
    again = []
    card = compare(HOST, problems, ARMS, rows=7, folder=tmp_path, on_batch=lambda *at: again.append(at)).card
    # The first arm was finished; of the second no two seconds of work were there to lose.
    assert {name for name, _ in again} == {"random"}
    assert without_seconds(card) == without_seconds(whole)


def test_kept_batches_of_another_setting_are_not_used(tmp_path):
    problems = HOST.problems("test", 10)
    compare(HOST, problems, ARMS, folder=tmp_path)
    wide = HOST.with_decoding(count=Fixed(2))
    for host, change in ((HOST, {"seeds": (1,)}), (wide, {})):
        ran = []
        compare(host, problems, ARMS, folder=tmp_path, on_batch=lambda *at, ran=ran: ran.append(at), **change)
        assert len(ran) == 2
    ran = []
    compare(HOST, problems, ARMS, folder=tmp_path, rows=3, on_batch=lambda *at: ran.append(at))
    assert ran == []


def test_a_card_comes_back_and_other_files_are_refused(tmp_path):
    comparison = compare(HOST, HOST.problems("select", 10), ARMS, command="dprm compare toy")
    comparison.save(tmp_path / "card.json")
    again = Card.load(tmp_path / "card.json")
    assert again == comparison.card
    assert again.versions["torch"] == torch.__version__
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json is not a result card"):
        Card.load(tmp_path / "other.json")


def test_every_interval_can_be_worked_out_again_from_the_outcomes_beside_the_card(tmp_path):
    policies = {"dprm": learned()}
    comparison = compare(
        HOST, HOST.problems("test", 60), arms_of(HOST, ("random",), policies, ablate=True), seeds=(3, 4), split="test"
    )
    comparison.save(tmp_path / "card.json")
    outcomes = Outcomes.load(beside(tmp_path / "card.json"))
    assert judged_again(Card.load(tmp_path / "card.json"), outcomes) == comparison.card
    short = compare(HOST, HOST.problems("test", 6), ARMS).outcomes
    with pytest.raises(ValueError, match="not those of the card of 60 problems"):
        judged_again(comparison.card, short)
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="holds no outcomes"):
        Outcomes.load(tmp_path / "bad.npz")


def test_decode_seeds_are_averaged_problem_by_problem_and_their_spread_is_shown():
    problems = HOST.problems("test", 100)
    comparison = compare(HOST, problems, ARMS, seeds=(0, 1, 2))
    scores = comparison.outcomes.scores["random"].squeeze(2).double()
    assert scores.shape == (3, 100)
    arm = comparison.card.arms["random"]
    assert arm.mean == pytest.approx(float(scores.mean()))
    assert arm.spread == pytest.approx(float(scores.mean(1).std()))
    one = compare(HOST, problems, ARMS, seeds=(0,)).card.arms["random"]
    assert one.spread is None
    assert arm.high - arm.low < one.high - one.low


def test_problems_of_one_group_are_resampled_together():
    problems = HOST.problems("test", 40)
    paired = Problems(problems.canvas, problems.key, problems.facts, group=problems.key // 8)
    card = compare(HOST, paired, ARMS).card
    assert card.groups == 5
    alone = compare(HOST, problems, ARMS).card
    assert card.arms["random"].mean == alone.arms["random"].mean
    assert card.arms["random"].low != alone.arms["random"].low


def test_a_comparison_needs_problems_and_arms():
    with pytest.raises(ValueError, match="problems is empty"):
        compare(HOST, HOST.problems("test", 0), ARMS)
    with pytest.raises(ValueError, match="arms is empty"):
        compare(HOST, HOST.problems("test", 3), {})
    with pytest.raises(ValueError, match="seeds is empty"):
        compare(HOST, HOST.problems("test", 3), ARMS, seeds=())


def test_a_card_says_whose_outputs_differ_where_it_ran_and_what_follows():
    comparison = compare(HOST, HOST.problems("test", 50), arms_of(HOST, ("random", "margin")))
    card = comparison.card
    tokens = {name: rollouts[0].tokens for name, rollouts in comparison.rollouts.items()}
    differ = (tokens["random"] != tokens["confidence"]).any(1)
    assert card.arms["random"].differs == float(differ.double().mean()) > 0.5
    # Of two tokens the surest by margin is the surest by confidence.
    assert card.arms["margin"].differs == 0.0
    assert card.arms["confidence"].differs is None
    assert card.device == "cpu"
    assert card.decoding == {"count": "1", "signal": "confidence"}
    assert card.verdict["reason"] == "no learned order was compared"
    assert card.notes["outputs"]["distinct"] == pytest.approx(1 + float(differ.double().mean()))
    assert sum(card.arms["random"].diagnostics["share"]) == pytest.approx(1.0, abs=1e-3)


def test_a_control_takes_the_best_of_several_paths_and_resumes_too(tmp_path):
    problems, arms = HOST.problems("test", 30), arms_of(HOST, (), best_of=4)
    card = compare(HOST, problems, arms, folder=tmp_path).card
    control = card.arms["confidence, best of 4"]
    assert control.nfe == 4 * card.arms["confidence"].nfe
    # Confidence never gets 1111; drawn tokens sometimes do.
    assert 0.3 < control.mean < 1.0
    ran = []
    again = compare(HOST, problems, arms, folder=tmp_path, on_batch=lambda *at: ran.append(at)).card
    assert ran == []
    assert again.arms["confidence, best of 4"].mean == control.mean


def test_prompt_local_values_are_reported_with_what_they_cost(tmp_path):
    problems = HOST.problems("test", 70)
    policies = {"asked": MonteCarlo(moments=(0.0,)).learn(_Spent(HOST))}
    comparison = compare(HOST, problems, arms_of(HOST, (), policies), split="test", folder=tmp_path)
    arm = comparison.card.arms["asked"]
    assert (arm.mean, arm.delta) == (1.0, 1.0)
    assert arm.nfe == 1 + 4 * 3 + 3
    ran = []
    compare(HOST, problems, arms_of(HOST, (), policies), folder=tmp_path, on_batch=lambda *at: ran.append(at))
    assert ran == []
    fewer = {"asked": MonteCarlo(moments=(0.0,), candidates=2).learn(_Spent(HOST))}
    compare(HOST, problems, arms_of(HOST, (), fewer), folder=tmp_path, on_batch=lambda *at: ran.append(at))
    assert [name for name, _ in ran] == ["asked", "asked"]


class _Spent:
    """What a Monte Carlo fit needs of a run: it decodes nothing."""

    def __init__(self, host):
        self.host = host


def test_values_that_cost_calls_are_reported_with_their_cost():
    arms = arms_of(HOST, (), candidates=4)
    card = compare(HOST, HOST.problems("test", 70), arms, split="test").card
    assert card.verdict["verdict"] == "report rollout cost"
    assert card.verdict["arm"] == "montecarlo"


def test_problems_that_chose_a_policy_are_no_test():
    problems = HOST.problems("select", 20)
    arms = arms_of(HOST, (), {"dprm": replace(learned(), notes={"selected_on": problems.digest})})
    with pytest.raises(ValueError, match="problems are those of select on which dprm was chosen: they are no test"):
        compare(HOST, problems, arms, split="test")
    assert compare(HOST, problems, arms, split="select").card.count == 20
    with pytest.raises(ValueError, match="seeds is -3: expected at least 0"):
        compare(HOST, problems, arms, seeds=(-3,))


def test_problems_that_a_policy_has_seen_are_no_test_not_even_some_of_them():
    fitted, chose = HOST.problems("fit", 3000), HOST.problems("select", 40)
    notes = {FITTED: sketch(fitted.groups), SELECTED: sketch(chose.groups)}
    assert len(notes[FITTED]) < 2000
    arms = arms_of(HOST, (), {"dprm": replace(learned(), notes=notes)})
    for split in ("select", "test"):
        with pytest.raises(ValueError, match="is one on which dprm was fitted: they are no " + split):
            compare(HOST, fitted[:300], arms, split=split)
    with pytest.raises(ValueError, match=r"problems\[row 0\] is one on which dprm was chosen: they are no test"):
        compare(HOST, chose[:20], arms, split="test")
    assert compare(HOST, fitted[:20], arms, split="fit").card.count == 20
    assert compare(HOST, chose[:20], arms, split="select").card.count == 20
    card = compare(HOST, HOST.problems("test", 2000)[:20], arms, split="test").card
    assert card.count == 20
    assert not {FITTED, SELECTED} & card.arms["dprm"].fit.keys()
    assert first_seen(notes[FITTED], HOST.problems("test", 20_000).groups) is None


def test_a_head_that_does_not_say_what_it_was_compared_on_is_not_ready():
    weight = torch.randn(len(names(1, 4)), generator=torch.Generator().manual_seed(0))
    told = Head(weight, support=1000, counts=torch.full((8 * 16,), 1000))
    policies = {
        name: dprm.Order(signal="odds", head=head, ready=16).policy()
        for name, head in (("told", told), ("silent", replace(told, counts=None)))
    }
    card = compare(HOST, HOST.problems("test", 20), arms_of(HOST, (), policies)).card
    assert (card.arms["told"].ready, card.arms["silent"].ready) == (1.0, 0.0)
    assert card.arms["told"].mean == card.arms["silent"].mean
