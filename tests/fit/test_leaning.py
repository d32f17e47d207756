"""What a fit leans on before it branches."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode import Decoding
from dprm.evaluate.protocol import settle
from dprm.fit import HeadFit, estimator, fit
from dprm.fit.branching import Branching
from dprm.fit.head import RACE
from dprm.fit.leaning import Leaning, decodings, leanings, problems_for, race
from dprm.host.decoded import decoded
from dprm.host.rollout import Decode
from dprm.order.features import LEFT, TURNS, names
from tests.toy_host import ToyHost

LENGTH, MASK = 6, 2


class LeftToRight(ToyHost):
    """Six bits, the surest last. A bit is 1 only if all to its left are visible; all have to be 1."""

    decoding = Decoding(mask_id=MASK)

    def model(self):
        def logits(tokens):
            hidden = tokens == MASK
            right = (hidden.cumsum(1) - hidden.long()) == 0
            sure = 1.0 + torch.arange(LENGTH) * 0.2
            one = torch.where(right, sure, -sure)
            return torch.stack([torch.zeros_like(one), one, torch.full_like(one, -9.0)], dim=2)

        return logits

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return replace(posed, canvas=torch.full((count, LENGTH), MASK))

    def judge(self, problems, tokens):
        return (tokens == 1).all(1).float()


HOST = LeftToRight()
SETTING = HeadFit(Branching(states=2, alternatives=2), rounds=2)
# A fifth of them pays for a race of the sixteen leanings on 56 problems.
CALLS = 5 * LENGTH * 8 * decodings(16) + 200


def test_every_leaning_is_a_feature_and_turns_need_several_positions_a_step():
    named = set(names(3, 1))
    one, several = (leanings(1, single, (10.0, 40.0)) for single in (True, False))
    assert {tried.feature for tried in several} <= named
    assert {tried.feature for tried in several} - {tried.feature for tried in one} == set(TURNS)
    assert len(several) == len(set(several)) == 2 * (2 + 2 + 2 + len(TURNS))
    assert len(leanings(4, True)) == 16
    assert not leanings(4, False, ())


@pytest.mark.parametrize("leaning", [Leaning(LEFT, -40.0), Leaning("first below 0.999", 2.5)])
def test_a_leaning_is_one_weight_and_is_shown_as_such(leaning):
    assert str(leaning) == f"{leaning.worth:g} · {leaning.feature}"
    weight = leaning.weight(aux=1, reach=4)
    assert int((weight != 0).sum()) == 1
    assert float(weight[names(1, 4).index(leaning.feature)]) == leaning.worth


def test_a_race_is_won_by_the_best_on_few_rewards():
    tried = [Leaning(str(place), 1.0) for place in range(32)]
    played = dict.fromkeys([None, *tried], 0)
    truth = {one: 0.3 if place == 17 else -0.02 * place for place, one in enumerate(tried)}
    noise = torch.randn(33, 700, generator=torch.Generator().manual_seed(0)) * 0.2

    def play(one, part):
        played[one] += part.stop - part.start
        if one is None:
            return torch.zeros(700)[part]
        return (noise[tried.index(one)] + truth[one])[part]

    assert race(tried, play, 700) == tried[17]
    assert played[tried[17]] == played[None] == 700
    assert sum(played.values()) - 700 == 32 * 100 + 8 * 200 + 2 * 400
    # Which is what a race was said to take.
    assert sum(played.values()) == 100 * decodings(32)


def test_a_race_has_as_many_problems_as_its_share_pays_for():
    assert problems_for(calls=1000.0 * decodings(16), steps=10.0, tried=16) == 7 * 100
    # So few problems could not tell one order from another.
    assert problems_for(calls=70.0 * decodings(16), steps=10.0, tried=16) == 0


def test_without_a_clear_winner_the_host_keeps_its_order():
    tried = [Leaning(str(place), 1.0) for place in range(16)]
    taken = 0
    for seed in range(40):
        noise = torch.randn(16, 70, generator=torch.Generator().manual_seed(seed))
        taken += (
            race(tried, lambda one, part, n=noise: 0.0 * n[0, part] if one is None else n[tried.index(one)][part], 70)
            is not None
        )
    assert taken <= 4
    assert race(tried, lambda one, part: torch.zeros(part.stop - part.start), 70) is None
    assert race([], lambda one, part: torch.zeros(0), 70) is None
    assert race(tried, lambda one, part: torch.zeros(0), 6) is None


def solved(policy):
    ways = {"host": Decode(), "dprm": Decode(dprm.Order.from_policy(policy))}
    rollouts = decoded(HOST, HOST.problems("test", 20), ways)
    return tuple(float(rollout.scores.mean()) for rollout in rollouts.values())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A fit, and the folder that keeps what it asked."""
    folder = tmp_path_factory.mktemp("whole")
    return fit(SETTING, HOST, calls=CALLS, folder=folder), folder


def test_left_to_right_is_found_where_single_branches_see_nothing(whole):
    # No single choice helps: all but one are still made from the right.
    setting = Branching(states=3, alternatives=3)
    branches, _ = setting.collect(HOST, HOST.problems("fit", 20), dprm.Order(), HOST.model())
    assert not branches.gain(HOST).any()
    assert whole[0].policy.notes["leaning"].endswith(LEFT)
    assert solved(whole[0].policy) == (0.0, 1.0)


def test_a_race_takes_its_share_of_the_calls_and_no_more():
    fitted = fit(estimator("leaning"), HOST, calls=CALLS).policy
    asked = 8 * LENGTH  # Of the host's order, what an answer takes.
    assert RACE * CALLS >= int(fitted.notes["calls"]) - asked > 0.5 * RACE * CALLS


def test_a_fit_of_no_rounds_is_the_leaning_alone():
    leaning = estimator("leaning")
    fitted = fit(leaning, HOST, calls=CALLS)
    assert fitted.policy.notes["estimator"] == "leaning"
    assert fitted.policy.notes["branches"] == "0"
    strengths = {"leaning": leaning.strengths(fitted.policy)}
    settled = settle(HOST, HOST.problems("select", 40), {"leaning": fitted}, strengths)
    assert settled.account.taken is not None
    assert solved(settled.policy) == (0.0, 1.0)


def test_where_nothing_is_leant_on_a_fit_of_no_rounds_is_the_hosts_order():
    class Solved(LeftToRight):
        def judge(self, problems, tokens):
            return torch.ones(len(tokens))

    leaning = estimator("leaning")
    fitted = fit(leaning, Solved(), calls=CALLS)
    assert "leaning" not in fitted.policy.notes
    assert leaning.strengths(fitted.policy) == ()
    settled = settle(Solved(), HOST.problems("select", 8), {"leaning": fitted}, {"leaning": ()})
    assert settled.account.taken is None
    assert settled.policy.guidance == 0.0


def test_a_killed_fit_leans_on_the_same_and_races_no_heat_twice(whole, tmp_path, monkeypatch):
    collect = Branching.collect

    def cut(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Branching, "collect", cut)
    with pytest.raises(KeyboardInterrupt):
        fit(SETTING, HOST, calls=CALLS, folder=tmp_path)
    monkeypatch.setattr(Branching, "collect", collect)
    result, decodings_made = Decode.result, []
    monkeypatch.setattr(Decode, "result", lambda self, *args: decodings_made.append(args) or result(self, *args))
    again = fit(SETTING, HOST, calls=CALLS, folder=tmp_path).policy
    assert (again.digest, again.notes) == (whole[0].policy.digest, whole[0].policy.notes)
    assert not decodings_made


def test_several_estimators_share_one_race(whole, monkeypatch):
    result, decodings_made = Decode.result, []
    monkeypatch.setattr(Decode, "result", lambda self, *args: decodings_made.append(args) or result(self, *args))
    shared = fit(estimator("leaning"), HOST, calls=CALLS, folder=whole[1]).policy
    assert not decodings_made
    # What was shared is counted for either.
    assert shared.notes == fit(estimator("leaning"), HOST, calls=CALLS).policy.notes
