"""Comparing orders, resuming, and the card."""

import json

import pytest
import torch

import dprm
from dprm.evaluate.card import Card
from dprm.evaluate.compare import compare
from tests.draws import taught
from tests.toy_host import ToyHost

HOST = ToyHost()
ORDERS = {"confidence": dprm.Order(), "random": dprm.Order(signal="random")}


def without_seconds(card):
    data = json.loads(card.to_json())
    for arm in data["arms"].values():
        del arm["seconds"]
    return data


def test_arms_are_paired_on_the_same_problems_at_the_same_calls():
    card, found = compare(HOST, HOST.problems("test", 200), ORDERS)
    arms = card.arms
    assert arms["confidence"].delta is None
    assert arms["random"].delta == pytest.approx(arms["random"].mean - arms["confidence"].mean)
    assert arms["random"].delta_low > 0.6
    assert arms["confidence"].nfe == arms["random"].nfe == 4
    assert arms["random"].solved == float((found["random"].reward == 1).double().mean())
    assert arms["random"].policy is None


def test_a_learned_order_reports_what_it_changed_and_trusted():
    order = taught(dprm.Order(ready=200), 1)
    card, _ = compare(HOST, HOST.problems("test", 20), {"confidence": dprm.Order(), "dprm": order})
    arm = card.arms["dprm"]
    assert arm.gate == pytest.approx(0.5)
    assert arm.ready == 0.0
    assert arm.policy == order.policy().digest


def test_a_killed_comparison_goes_on_and_ends_in_the_same_card(tmp_path):
    problems = HOST.problems("test", 30)
    whole, _ = compare(HOST, problems, ORDERS, rows=7)
    done = []

    def kill(name, count):
        done.append((name, count))
        if len(done) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(HOST, problems, ORDERS, rows=7, folder=tmp_path, on_batch=kill)
    again = []
    card, _ = compare(
        HOST, problems, ORDERS, rows=7, folder=tmp_path, on_batch=lambda name, count: again.append((name, count))
    )
    assert again == [("random", 21), ("random", 28), ("random", 30)]
    assert without_seconds(card) == without_seconds(whole)


def test_kept_batches_of_another_setting_are_not_used(tmp_path):
    problems = HOST.problems("test", 10)
    compare(HOST, problems, ORDERS, folder=tmp_path)
    for change in ({"seed": 1}, {"budget": 2}):
        ran = []
        compare(HOST, problems, ORDERS, folder=tmp_path, on_batch=lambda *a, ran=ran: ran.append(a), **change)
        assert len(ran) == 2


def test_a_card_comes_back_and_other_files_are_refused(tmp_path):
    card, _ = compare(HOST, HOST.problems("select", 10), ORDERS, split="select", command="dprm compare toy")
    card.save(tmp_path / "card.json")
    again = Card.load(tmp_path / "card.json")
    assert again == card
    assert again.versions["torch"] == torch.__version__
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json is not a result card"):
        Card.load(tmp_path / "other.json")


def test_a_comparison_needs_problems_and_its_reference():
    with pytest.raises(ValueError, match="problems is empty"):
        compare(HOST, HOST.problems("test", 0), ORDERS)
    with pytest.raises(ValueError, match="reference is 'entropy'"):
        compare(HOST, HOST.problems("test", 3), ORDERS, reference="entropy")


def test_a_card_says_whose_outputs_differ_where_it_ran_and_what_follows():
    orders = {**ORDERS, "again": dprm.Order(signal="margin")}
    card, found = compare(HOST, HOST.problems("test", 50), orders)
    differ = (found["random"].tokens != found["confidence"].tokens).any(1)
    assert card.arms["random"].differs == float(differ.double().mean()) > 0.5
    # Of two tokens the surest by margin is the surest by confidence.
    assert card.arms["again"].differs == 0.0
    assert card.arms["confidence"].differs is None
    assert card.device == "cpu"
    assert card.verdict["reason"] == "no learned order was compared"
    assert card.notes["outputs"]["distinct"] == pytest.approx(1 + float(differ.double().mean()))
    assert sum(card.arms["random"].diagnostics["share"]) == pytest.approx(1.0, abs=1e-3)


def test_a_control_takes_the_best_of_several_paths_and_resumes_too(tmp_path):
    problems = HOST.problems("test", 30)
    card, _ = compare(HOST, problems, {"confidence": dprm.Order()}, best_of=4, folder=tmp_path)
    control = card.arms["confidence, best of 4"]
    assert control.nfe == 4 * card.arms["confidence"].nfe
    # Confidence never gets 1111; drawn tokens sometimes do.
    assert 0.3 < control.mean < 1.0
    ran = []
    again, _ = compare(
        HOST, problems, {"confidence": dprm.Order()}, best_of=4, folder=tmp_path, on_batch=lambda *a: ran.append(a)
    )
    assert ran == []
    assert again.arms["confidence, best of 4"].mean == control.mean


def test_prompt_local_values_are_reported_with_what_they_cost(tmp_path):
    from dprm.fit import MonteCarlo

    host = ToyHost()
    local = {"montecarlo": MonteCarlo(moments=(0.0,))}
    card, _ = compare(host, host.problems("test", 70), {"confidence": dprm.Order()}, local=local)
    arm = card.arms["montecarlo"]
    assert (arm.mean, arm.delta) == (1.0, 1.0)
    assert arm.nfe == 1 + 4 * 3 + 3
    assert card.verdict["verdict"] == "report rollout cost"
    card.save(tmp_path / "card.json")
    assert Card.load(tmp_path / "card.json").arms["montecarlo"].nfe == arm.nfe


def test_prompt_local_values_are_not_asked_twice(tmp_path):
    from dprm.fit import MonteCarlo

    problems, orders = HOST.problems("test", 70), {"confidence": dprm.Order()}
    ran: list[tuple[str, int]] = []

    def run(setting):
        ran.clear()
        card, _ = compare(
            HOST, problems, orders, local={"asked": setting}, folder=tmp_path, on_batch=lambda *a: ran.append(a)
        )
        return card.arms["asked"].mean

    first = run(MonteCarlo(moments=(0.0,)))
    assert ran[-2:] == [("asked", 64), ("asked", 70)]
    assert run(MonteCarlo(moments=(0.0,))) == first
    assert ran == []
    run(MonteCarlo(moments=(0.0,), candidates=2))
    assert [name for name, _ in ran] == ["asked", "asked"]
