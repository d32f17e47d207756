"""A replay opens with the order most worth seeing, among those that were recorded."""

import dataclasses

from dprm.report.replay import replay


def learned(card):
    """The arms of a card, and three more with policies, of which the last is an ablation."""
    named = (("weak", 0.2, None), ("best", 0.6, None), ("best, shuffled", 0.9, "best"))
    random = card.arms["random"]
    return {
        **card.arms,
        **{
            name: dataclasses.replace(random, policy="0" * 16, mean=mean, ablates=ablated)
            for name, mean, ablated in named
        },
    }


def recorded(card, *orders):
    """A card whose recordings are of these orders."""
    problems = [dict.fromkeys(orders, problem["random"]) for problem in card.replays.problems]
    return dataclasses.replace(card, arms=learned(card), replays=dataclasses.replace(card.replays, problems=problems))


def opened(card):
    return replay(card, dict.fromkeys(card.arms, "red")).replay


def test_a_replay_opens_with_the_learned_order_that_earns_most(card):
    assert opened(recorded(card, "confidence", "random", "weak", "best, shuffled", "best"))["other"] == "best"
    assert opened(card)["other"] == "random"


def test_a_replay_opens_only_with_what_was_recorded(card):
    content = opened(recorded(card, "confidence", "random", "weak"))
    assert content["other"] == "weak"
    assert list(content["colours"]) == ["confidence", "random", "weak"]
    assert opened(recorded(card, "confidence", "random"))["other"] == "random"
    assert opened(recorded(card, "confidence"))["other"] == "confidence"


def test_without_a_recording_of_the_reference_another_order_takes_its_side(card):
    content = opened(recorded(card, "weak", "best"))
    assert (content["reference"], content["other"]) == ("weak", "best")


def test_a_recording_of_an_order_that_was_not_compared_is_not_shown(card):
    content = opened(recorded(card, "confidence", "stranger", "random"))
    assert all(list(problem) == ["confidence", "random"] for problem in content["problems"])
    assert replay(recorded(card, "stranger"), {}) is None
