"""What an engine calls: the state of its requests, the choice of one step, and what is refused."""

import pytest
import torch

import dprm
from dprm.contrib.packing import packed, unpacked
from dprm.contrib.requests import Requests
from dprm.contrib.selector import Selector
from dprm.order.features import names as features
from dprm.order.head import Head
from dprm.order.policy import PolicyError
from tests.contrib.engines import MASK, VOCABULARY, as_on_an_accelerator, policy, states


def step(selector, x, before, width=2, names=None):
    """An engine that reveals the `width` surest positions of every row, with topk."""
    masked = before == MASK
    confidence, token = x.softmax(-1).max(-1)
    top = torch.where(masked, confidence, -torch.inf).topk(width).indices
    own = torch.zeros_like(masked).scatter_(1, top, True) & masked
    requests = Requests.begin(names or [str(row) for row in range(len(x))], masked)
    return own, selector.select(own, confidence, masked, requests, logits=x, tokens=token)


@pytest.mark.parametrize("empty", [None, dprm.Order().policy(), dprm.Order(signal="odds", rule="soft_bon").policy()])
@pytest.mark.parametrize("recorded", [False, True])
def test_an_empty_policy_leaves_the_engines_choice_as_it_is(tmp_path, empty, recorded):
    selector = Selector(empty, mask_id=MASK, traces=tmp_path if recorded else None)
    for seed in range(40):
        own, mask = step(selector, *states(seed))
        assert torch.equal(mask, own)


def test_guidance_zero_is_the_engines_own_order():
    selector = Selector(policy(), mask_id=MASK, guidance=0.0)
    own, mask = step(selector, *states(0))
    assert torch.equal(mask, own)


def test_a_policy_chooses_by_its_scores_as_many_as_the_engine_would():
    known = policy()
    selector, order = Selector(known, mask_id=MASK), dprm.Order.from_policy(known)
    differ = 0
    for seed in range(20):
        x, before = states(seed)
        own, mask = step(selector, x, before)
        assert torch.equal(mask.sum(1), own.sum(1))
        assert not (mask & (before != MASK)).any()
        masked = before == MASK
        reading = dprm.Reading(before, *[x.softmax(-1).max(-1).values] * 3)
        choice = order.select(reading, masked, own.sum(1), 0.0)
        assert torch.equal(mask[choice.changed], choice.mask[choice.changed])
        assert torch.equal(mask[~choice.changed], own[~choice.changed])
        differ += int((mask != own).any(1).sum())
    assert differ > 20


@pytest.mark.parametrize("signal", ["margin", "entropy"])
def test_an_engine_that_ranks_by_something_else_keeps_its_order_too(tmp_path, signal):
    changed = 0
    for seed in range(20):
        x, before = states(seed)
        masked = before == MASK
        reading = dprm.read(x, forbid=MASK)
        rank = reading.margin if signal == "margin" else -reading.entropy
        top = torch.where(masked, rank, -torch.inf).topk(2).indices
        own = torch.zeros_like(masked).scatter_(1, top, True) & masked
        requests = Requests.begin([str(row) for row in range(6)], masked)
        known = {"confidence": None, "candidates": masked, "requests": requests, "logits": x}
        quiet = Selector(None, mask_id=MASK, signal=signal, traces=tmp_path)
        assert torch.equal(quiet.select(own, **known), own)
        chosen = Selector(policy(signal=signal), mask_id=MASK, signal=signal).select(own, **known)
        assert torch.equal(chosen.sum(1), own.sum(1))
        changed += int((chosen != own).any(1).sum())
    assert changed > 10


def a_head() -> dprm.Policy:
    weight = torch.randn(len(features(1, 4)), generator=torch.Generator().manual_seed(0))
    return dprm.Order(head=Head(weight, support=1000), ready=1).policy()


@pytest.mark.parametrize(
    "make", [policy, a_head, lambda: policy(rule="soft_bon"), lambda: policy(rule="shortlist_top_m")]
)
def test_a_request_is_treated_alike_in_every_batch(make):
    selector = Selector(make(), mask_id=MASK)
    x, before = states(3)
    names = [f"request-{row}" for row in range(len(x))]
    _, together = step(selector, x, before, names=names)
    order = torch.tensor([4, 1, 5, 0, 3, 2])
    _, mixed = step(selector, x[order], before[order], names=[names[row] for row in order])
    assert torch.equal(mixed, together[order])
    for row, name in enumerate(names):
        _, alone = step(selector, x[[row]], before[[row]], names=[name])
        assert torch.equal(alone[0], together[row])


@pytest.mark.parametrize("make", [policy, a_head, lambda: policy(rule="soft_bon")])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_step_waits_for_nothing(tmp_path, monkeypatch, make, recorded):
    selector = Selector(make(), mask_id=MASK, traces=tmp_path if recorded else None)
    x, before = states(0)
    step(selector, x, before)
    with as_on_an_accelerator(monkeypatch) as counted:
        step(selector, x, before)
    assert counted.count == 0


def test_the_count_of_waits_counts(monkeypatch):
    with as_on_an_accelerator(monkeypatch) as counted:
        x, _ = states(0)
        bool(x.any())
        x[x > 0]
        x.max().item()
        x.tolist()
        x.cpu()
        x.to("cpu")
        torch.tensor([1.0], device=x.device)
    assert counted.count == 7


def test_a_revised_block_keeps_the_engines_edits_and_reveals_no_mask():
    x, before = states(5)
    after = before.clone()
    visible = (before != MASK).nonzero()[0]
    after[tuple(visible)] = (before[tuple(visible)] + 1) % MASK
    x[:, 3, MASK] = 50.0
    first = torch.where(before == MASK, x[..., :MASK].max(-1).values, -100.0)
    first[:, 3] = -100.0
    row = torch.arange(len(x))
    has = (first > -100).any(1)
    place = first.argmax(1)
    after[row[has], place[has]] = x[..., :MASK].argmax(-1)[row[has], place[has]]
    selector = Selector(policy(), mask_id=MASK)
    revised = selector.revise(before, after, x, Requests.begin([str(r) for r in row.tolist()], before == MASK))
    assert revised[tuple(visible)] == after[tuple(visible)]
    assert torch.equal((revised == MASK).sum(1), (after == MASK).sum(1))
    assert (revised[:, 3] == MASK).eq(before[:, 3] == MASK).all()


def test_policies_are_kept_byte_for_byte(tmp_path):
    for number, known in enumerate((policy(), a_head(), dprm.Order().policy(host="mine"))):
        path = tmp_path / f"{number}.dprm"
        known.save(path)
        assert packed(path) == packed(known)
        unpacked(packed(path)).save(tmp_path / "again.dprm")
        assert (tmp_path / "again.dprm").read_bytes() == path.read_bytes()
    with pytest.raises(PolicyError, match="damaged"):
        unpacked("no policy!")


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="mask_id is None: dprm chooses among masked positions"):
        Selector(policy(), mask_id=None)
    with pytest.raises(ValueError, match="mask_id is -1"):
        Selector(policy(), mask_id=-1)
    with pytest.raises(ValueError, match="mask_id is 9: outside the vocabulary of 9"):
        Selector(policy(), mask_id=9, vocabulary=9)
    fitted = dprm.Order().policy(mask_id="126336", vocabulary="126464")
    with pytest.raises(PolicyError, match="fitted with mask_id = 126336, and this model has 8"):
        Selector(fitted, mask_id=8)
    with pytest.raises(PolicyError, match="fitted with vocabulary = 126464, and this model has 200000"):
        Selector(fitted, mask_id=126336, vocabulary=200_000)
    with pytest.raises(PolicyError, match="corrects the order by entropy, and this engine ranks by confidence"):
        Selector(dprm.Order(signal="entropy").policy(), mask_id=8)
    selector = Selector(a_head(), mask_id=MASK, vocabulary=VOCABULARY)
    x, before = states(0)
    requests = Requests.begin([str(row) for row in range(6)], before == MASK)
    with pytest.raises(ValueError, match="the engine has to hand over its logits"):
        selector.select(before == MASK, x.softmax(-1).amax(-1), before == MASK, requests)
    with pytest.raises(ValueError, match="logits has 8 tokens: expected the vocabulary of 9"):
        selector.revise(before, before, x[..., :8], requests)
    with pytest.raises(ValueError, match="requests has 1 rows: expected 6"):
        selector.select(before == MASK, None, before == MASK, requests[0], logits=x)
    with pytest.raises(ValueError, match="names has 2 requests: expected 6"):
        Requests.begin(["a", "b"], before == MASK)
    several = Selector(dprm.Order(aux=3, rule="soft_bon").policy(), mask_id=MASK, explore=True)
    with pytest.raises(ValueError, match="3 states of a position: expected aux"):
        several.select(before == MASK, None, before == MASK, requests, logits=x)


def test_exploring_leaves_the_engines_order_where_nothing_is_known():
    selector = Selector(dprm.Order().policy(), mask_id=MASK, explore=True)
    differ = sum(int((a != b).any()) for a, b in (step(selector, *states(seed)) for seed in range(10)))
    assert differ >= 8
