"""Search around a host: what it costs, what it keeps, and that a question fares the same in any company."""

from dataclasses import replace

import pytest
import torch

import dprm
from dprm.decode.counts import Threshold
from dprm.evaluate.arms import WARM, arms_of
from dprm.evaluate.compare import compare
from dprm.host.host import Host, Problems
from dprm.host.rollout import Decode
from dprm.order.noise import mix_rows
from dprm.search import ByFunction, Likelihood, Schedule, Search, VerdictSlot, searched
from dprm.search.around import DRAWN, FRESH, PLAIN, READY
from dprm.search.ranks import with_ranks
from dprm.search.search import VERIFIER
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas
from tests.toy_host import ToyHost

LENGTH = 14
SMALL = Schedule(width=6, survivors=3, first=1, interval=1, decay=1.6)


class Mocked(Host):
    """Canvases of a mock denoiser; an answer is worth the share of its tokens that are even."""

    name = "mocked"
    decoding = dprm.Decoding(mask_id=MASK, count=Threshold(0.95))

    def __init__(self):
        self.denoiser = MockDenoiser(3, sharpness=1.0)

    def model(self):
        return self.denoiser

    def problems(self, split, count, seed=0):
        canvas = masked_canvas(count, LENGTH)
        return Problems(canvas, mix_rows(torch.arange(count), seed) & (2**62 - 1), list(range(count)))

    def judge(self, problems, tokens):
        return (tokens % 2 == 0).float().mean(1)


HOST = Mocked()
# Knows nothing of the reward: likes zeros.
VERIFIES = ByFunction(lambda tokens, facts: (tokens == 0).float().mean(1), calls=1)
TABLE = dprm.Order(phases=4, bins=8, ready=4, warm=1, switch=3, rule="soft_bon", explore=True)


def answered(search, count=8, host=HOST, rows=slice(None), seed=0):
    problems = host.problems("test", count)[rows]
    return search.answer(host, problems, seed, host.model())


def same(one, other):
    alike = {name: column for name, column in other.tensors().items() if name != "seconds"}
    return all(torch.equal(one.tensors()[name].nan_to_num(-1), column.nan_to_num(-1)) for name, column in alike.items())


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_one_branch_without_prunes_is_plain_decoding(temperature):
    alone = Search(VERIFIES, Schedule(width=1, survivors=1), temperature=temperature)
    rollout = answered(alone)
    plain = answered(Decode(temperature=temperature))
    for name in ("tokens", "step_map", "scores", "decisions", "changed", "picks"):
        assert torch.equal(getattr(rollout, name), getattr(plain, name)), name
    assert torch.equal(rollout.confidence.nan_to_num(-1), plain.confidence.nan_to_num(-1))
    assert torch.equal(rollout.calls["denoiser"], plain.calls["denoiser"])


@pytest.mark.parametrize("how", ["host", "frozen", "fresh", "prior"])
def test_a_question_fares_the_same_in_any_company(how):
    order = {"host": None, "frozen": dprm.Order(signal="margin")}.get(how, TABLE)
    prior = None
    if how == "prior":
        prior = dprm.Stats(TABLE.cells)
        prior.add(torch.tensor([3, 3, 12, 20]), torch.tensor([0.2, 0.4, 0.9, 0.1]))
    search = Search(VERIFIES, SMALL, remask=2, order=order, fresh=how in ("fresh", "prior"), prior=prior, weight=0.5)
    whole = answered(search)
    for rows in (slice(0, 3), slice(3, 8), slice(5, 6)):
        assert same(answered(search, rows=rows), whole[rows])


def test_calls_are_those_of_the_model_and_the_verifier(monkeypatch):
    seen = []
    plain = HOST.denoiser.__call__
    monkeypatch.setattr(Mocked, "model", lambda self: lambda tokens: (seen.append(len(tokens)), plain(tokens))[1])
    asked = []
    counting = ByFunction(lambda tokens, facts: (asked.append(len(tokens)), torch.zeros(len(tokens)))[1], calls=1)
    rollout = answered(Search(counting, SMALL))
    # Rows that wait for their batch to shrink are computed, but are no calls of an answer.
    assert int(rollout.calls["denoiser"].sum()) <= sum(seen)
    assert int(rollout.calls[VERIFIER].sum()) == sum(asked)
    one = answered(Search(counting, SMALL), rows=slice(0, 1))
    assert int(one.calls["denoiser"].sum()) == int(rollout.calls["denoiser"][0])


def test_equal_answers_to_a_question_are_verified_once():
    host = ToyHost()
    problems = host.problems("test", 5)
    rollout = Search(VERIFIES, Schedule(width=4, survivors=4), temperature=0.0).answer(host, problems, 0, host.model())
    # Nothing is drawn: all four branches say the same.
    assert rollout.calls[VERIFIER].tolist() == [1] * 5


def test_the_verifier_decides_and_the_reward_is_never_seen():
    evens = ByFunction(lambda tokens, facts: (tokens % 2 == 0).float().mean(1))
    odds = ByFunction(lambda tokens, facts: (tokens % 2 == 1).float().mean(1))
    wide = Schedule(width=16, survivors=4)
    likes, dislikes = (answered(Search(verifier, wide, remask=3), count=40) for verifier in (evens, odds))
    assert float(likes.scores.mean()) > float(dislikes.scores.mean()) + 0.1


def test_a_fresh_order_learns_within_the_question():
    fresh = answered(Search(VERIFIES, SMALL, order=TABLE, fresh=True), count=30)
    assert float(fresh.gate.sum()) > 0
    empty = answered(Search(VERIFIES, SMALL, order=TABLE), count=30)
    assert float(empty.gate.sum()) == 0
    assert not torch.equal(fresh.tokens, empty.tokens)


def test_every_rank_is_shown_and_the_best_of_them():
    host = with_ranks(HOST, survivors=3)
    rollout = answered(Search(VERIFIES, SMALL), host=host, count=20)
    names = [metric.name for metric in host.judged]
    assert names == ["reward", "rank 1", "rank 2", "rank 3", "any of 3"]
    ranks = rollout.scores[:, 1:4]
    assert torch.equal(rollout.scores[:, 4], ranks.amax(1))
    assert bool((rollout.scores[:, :1] == ranks).any(1).all())
    plain = answered(Decode(), host=host, count=20)
    assert torch.equal(plain.scores, plain.scores[:, :1].expand(-1, 5))


def test_a_verdict_slot_asks_the_model_itself():
    class Yes:
        def __call__(self, tokens):
            logits = torch.zeros(*tokens.shape, 7)
            assert bool((tokens[:, -1] == MASK).all())
            logits[:, -1, 4] = tokens[:, 0].float()
            return logits

    slot = VerdictSlot(MASK, yes=4, no=5)
    problems = HOST.problems("test", 3)
    tokens = torch.tensor([[0, 1], [1, 1], [2, 1]])
    score = slot(problems, tokens, Yes())
    assert torch.allclose(score, torch.tensor([0.0, 1.0, 2.0]).sigmoid())


def test_likelihood_is_the_mean_probability_of_what_was_decoded():
    problems = HOST.problems("test", 2)
    tokens = torch.where(problems.canvas == MASK, 1, problems.canvas)
    p = HOST.denoiser(tokens).softmax(-1)[..., 1][:, 2:]
    assert torch.allclose(Likelihood()(problems, tokens, HOST.denoiser), p.log().mean(1).exp(), atol=1e-6)


def test_a_comparison_of_a_searched_host_has_its_arms():
    host = searched(HOST, SMALL, VERIFIES, remask=2)
    policy = dprm.Order(signal="margin").policy()
    arms = arms_of(host, ("random",), {"margin policy": policy})
    assert list(arms) == ["confidence", "random", "margin policy", PLAIN, FRESH, DRAWN]
    card = compare(host, host.problems("test", 12), arms, split="test").card
    assert card.arms[PLAIN].calls.keys() == {"denoiser"}
    assert card.arms["confidence"].calls["verifier"] > 3
    assert card.arms["confidence"].nfe > 4 * card.arms[PLAIN].nfe
    assert card.arms[FRESH].metrics["any of 3"].mean >= card.arms[FRESH].mean
    assert card.arms[DRAWN].differs > 0, "it draws as the fresh table does, without its values"


def test_a_table_of_earlier_questions_starts_every_fresh_one():
    host = searched(HOST, SMALL, VERIFIES, remask=2)
    order = dprm.Order(8, 16, rule="soft_bon", explore=True, baseline="prompt")
    earlier = host.problems("fit", 60).copies(4)
    result = Decode(order).result(host, earlier, 1, host.model())
    order.observe(result.trace, host.reward(host.scores(earlier, result.tokens)), torch.arange(60).repeat_interleave(4))
    arms = arms_of(host, (), {"table": order.policy(), "head": dprm.Order(signal="margin").policy()})
    assert [name for name in arms if WARM in name] == [f"table, {WARM}"], "what has no evidence starts nothing"
    warm = arms[f"table, {WARM}"].way
    fullest = float((warm.prior.count * warm.weight).max())
    assert fullest == pytest.approx(READY), "a question soon outweighs what the others said"
    rollout = answered(warm, host=host)
    cold = answered(replace(warm, prior=None), host=host)
    assert float(rollout.gate.sum()) > float(cold.gate.sum()), "it counts from the first step on"
    assert same(answered(warm, host=host, rows=slice(2, 5)), rollout[slice(2, 5)])


def test_a_copy_masks_half_of_its_least_sure_tokens_again():
    from dprm.decode import begin
    from dprm.search.branches import Branches

    state = begin(masked_canvas(1, 8, prompt=2), HOST.decoding, 0)
    state = replace(
        state, tokens=torch.arange(8).remainder(5).unsqueeze(0), step_map=torch.tensor([[0, 0, 1, 1, 2, 2, 3, 3]]).int()
    )
    confidence = torch.tensor([[torch.nan, torch.nan, 0.9, 0.1, 0.8, 0.2, 0.7, 0.3]])
    branches = Branches(state, 1, confidence, state.tokens)
    grown = branches.grown(torch.tensor([[0]]), 4, remask=2, mask_id=MASK)
    masked = grown.state.tokens == MASK
    assert masked.sum(1).tolist() == [0, 2, 2, 2]
    # The four least sure are the pool; copies draw by themselves.
    assert set(masked.nonzero()[:, 1].tolist()) <= {3, 5, 7, 6}
    assert len(masked[1:].unique(dim=0)) > 1
    assert torch.equal(grown.state.step_map == 0, masked | (torch.arange(8) < 2))
    assert bool(grown.confidence[masked].isnan().all())


def test_parents_say_different_things_where_they_can():
    from dprm.decode import begin
    from dprm.search.branches import Branches

    state = begin(masked_canvas(4, 4), HOST.decoding, 0)
    filled = torch.tensor([[1, 1, 1, 1], [2, 2, 2, 2], [1, 1, 1, 1], [3, 3, 3, 3]])
    branches = Branches(state, 4, torch.zeros(4, 4), filled)
    assert branches.ranked(torch.tensor([0.9, 0.2, 0.95, 0.1])).tolist() == [[2, 1, 3, 0]]
    assert branches.ranked(torch.tensor([0.5, 0.5, 0.5, 0.5])).tolist() == [[0, 1, 3, 2]]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"fresh": True}, "fresh needs an order"),
        ({"prior": dprm.Stats(4)}, "prior is given"),
        ({"share": 0.0}, "share is 0"),
        ({"parents": 0}, "parents is 0"),
        ({"weight": 2.0}, "weight is 2"),
    ],
)
def test_settings_that_cannot_work_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        Search(VERIFIES, **setting)


def test_a_verifier_that_gives_no_score_in_range_is_named():
    with pytest.raises(ValueError, match=r"score of the verifier\[row 0\] is 2"):
        answered(Search(ByFunction(lambda tokens, facts: torch.full((len(tokens),), 2.0))))
    with pytest.raises(ValueError, match=r"the verifier gave scores \(3,\)"):
        answered(Search(ByFunction(lambda tokens, facts: torch.zeros(3))))
