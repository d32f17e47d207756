"""What a fit leans on before it branches."""

import pytest
import torch

import dprm
from dprm.evaluate.compare import compare
from dprm.evaluate.protocol import settle
from dprm.fit import HeadFit, estimator
from dprm.fit.branching import Branching
from dprm.fit.leaning import Leaning, leanings, race
from dprm.host.host import Problems
from dprm.order.basis import LEFT, names
from dprm.order.head import HeadShape
from dprm.order.pace import TURNS
from tests.toy_host import ToyHost

LENGTH, MASK = 6, 2


class LeftToRight(ToyHost):
    """Six bits, the surest last. A bit is 1 only if all to its left are visible; all have to be 1."""

    mask_id = MASK

    def denoiser(self):
        def logits(tokens):
            hidden = tokens == MASK
            right = (hidden.cumsum(1) - hidden.long()) == 0
            sure = 1.0 + torch.arange(LENGTH) * 0.2
            one = torch.where(right, sure, -sure)
            return torch.stack([torch.zeros_like(one), one, torch.full_like(one, -9.0)], dim=2)

        return logits

    def problems(self, split, count, seed=0):
        posed = super().problems(split, count, seed)
        return Problems(torch.full((count, LENGTH), MASK), posed.key, list(range(count)))

    def reward(self, problems, tokens):
        return (tokens == 1).all(1).float()


HOST = LeftToRight()


def head_fit(rounds):
    return HeadFit(Branching(states=2, alternatives=2), rounds=rounds, trials=28, strengths=(3.0, 30.0))


def test_every_leaning_is_a_feature_and_turns_need_several_positions_a_step():
    shape = HeadShape(aux=3, reach=1)
    named = set(names(3, 1))
    one, several = leanings(shape, 1, (10.0, 40.0)), leanings(shape, 4, (10.0, 40.0))
    assert {tried.feature for tried in several} <= named
    assert {tried.feature for tried in several} - {tried.feature for tried in one} == set(TURNS)
    assert len(several) == len(set(several)) == 2 * (2 + 2 + 2 + len(TURNS))
    assert not leanings(shape, 4, ())


@pytest.mark.parametrize("leaning", [Leaning(LEFT, -40.0), Leaning("first below 0.999", 2.5)])
def test_a_leaning_is_read_back_from_what_is_shown(leaning):
    assert Leaning.read(str(leaning)) == leaning
    weight = leaning.weight(HeadShape())
    assert int((weight != 0).sum()) == 1
    assert float(weight.sum()) == leaning.worth


def test_a_race_is_won_by_the_best_on_few_rewards():
    tried = [Leaning(str(place), 1.0) for place in range(32)]
    played = dict.fromkeys(tried, 0)
    truth = {one: 0.3 if place == 17 else -0.02 * place for place, one in enumerate(tried)}
    noise = torch.randn(33, 700, generator=torch.Generator().manual_seed(0)) * 0.2

    def play(one, part):
        if one is None:
            return torch.zeros(700)[part]
        played[one] += part.stop - part.start
        return (noise[tried.index(one)] + truth[one])[part]

    assert race(tried, play, 700) == tried[17]
    assert played[tried[17]] == 700
    assert sum(played.values()) == 32 * 100 + 8 * 200 + 2 * 400


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


def solved(policy, **others):
    orders = {"confidence": dprm.Order(), "dprm": dprm.Order.from_policy(policy, **others)}
    card, _ = compare(HOST, HOST.problems("test", 20), orders)
    return card.arms["confidence"].mean, card.arms["dprm"].mean


def test_left_to_right_is_found_where_single_branches_see_nothing(tmp_path):
    # No single choice helps: all but one are still made from the right.
    branches = Branching(states=3, alternatives=3).collect(HOST, HOST.problems("fit", 20), dprm.Order())
    assert not branches.gain.any()
    policy = head_fit(2).fit(HOST, HOST.problems("fit", 60), tmp_path / "p.dprm")
    assert policy.notes["leaning"].endswith(LEFT)
    assert solved(policy) == (0.0, 1.0)


def test_a_fit_of_no_rounds_is_the_leaning_alone(tmp_path):
    plan = estimator("leaning", 64, width=1)
    fitted = plan.estimator.fit(HOST, HOST.problems("fit", plan.prompts), tmp_path / "p.dprm")
    assert fitted.notes["estimator"] == "leaning"
    assert "branches" not in fitted.notes or fitted.notes["branches"] == "0"
    policy, account = settle(
        HOST, HOST.problems("select", 40), {"leaning": fitted}, {"leaning": plan.guidances(fitted)}
    )
    assert account.taken is not None
    assert solved(policy) == (0.0, 1.0)


def test_where_nothing_is_leant_on_a_fit_of_no_rounds_is_the_hosts_order(tmp_path):
    class Solved(LeftToRight):
        def reward(self, problems, tokens):
            return torch.ones(len(tokens))

    plan = estimator("leaning", 64, width=1)
    fitted = plan.estimator.fit(Solved(), HOST.problems("fit", plan.prompts), tmp_path / "p.dprm")
    assert "leaning" not in fitted.notes
    assert plan.guidances(fitted) == ()
    policy, account = settle(Solved(), HOST.problems("select", 8), {"leaning": fitted}, {"leaning": ()})
    assert account.taken is None
    assert policy.guidance == 0.0


def test_a_killed_fit_leans_on_the_same(tmp_path, monkeypatch):
    problems = HOST.problems("fit", 60)
    whole = head_fit(2).fit(HOST, problems, tmp_path / "whole.dprm")
    collect = Branching.collect

    def cut(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Branching, "collect", cut)
    with pytest.raises(KeyboardInterrupt):
        head_fit(2).fit(HOST, problems, tmp_path / "cut.dprm")
    monkeypatch.setattr(Branching, "collect", collect)
    again = head_fit(2).fit(HOST, problems, tmp_path / "cut.dprm")
    assert (again.digest, again.notes) == (whole.digest, whole.notes)
