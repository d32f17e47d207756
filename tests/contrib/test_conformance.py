"""What every adapter of a function or a decoder keeps, on stand-ins of the same signature."""

from types import SimpleNamespace

import numpy
import pytest
import torch

import dprm
from dprm.contrib import d2cache, dinfer, lmdeploy, mlx_vlm, topk, transfer_index, vllm
from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch
from dprm.fit.traces import read_shard
from dprm.order.features import names as features
from dprm.order.head import Head
from tests.contrib import sampler_with_topk, stand_ins
from tests.contrib.engines import MASK, VOCABULARY, Engine, as_on_an_accelerator, policy, states


def committed(fn, x, before):
    masked = before == MASK
    tokens, taken = fn(x, 0.0, "low_confidence", masked, before, masked.sum(1).clamp(max=2))
    return torch.where(taken, tokens, before)


def of_unmasking(processor, x, before):
    state = (before != MASK).long().flatten()
    after, tokens = processor(x.flatten(0, 1), before.flatten(), x.argmax(-1).flatten(), state)
    return torch.where(after.view_as(before) > 0, tokens.view_as(before), MASK)


def of_decoder(decoder, x, before):
    text = torch.cat([torch.zeros_like(before), before], dim=1)
    length = before.shape[1]
    decoder.block_init(before, 1)
    decoder.decode(x, length, 2 * length, text)
    return text[:, length:]


def of_positions(fn, x, before):
    sure, tokens = x.softmax(-1).max(-1)
    masked = before == MASK
    settings = {"transfer_index_mask": masked, "block_mask": torch.ones_like(masked), "num_transfer_tokens": 2}
    index, extra = fn(
        active_seq_idx=torch.arange(len(x)), scores=torch.where(masked, sure, -torch.inf), probs=x, **settings
    )
    assert extra == {"kept": 1}
    after = before.clone()
    for row, places in enumerate(index):
        after[row, places] = tokens[row, places]
    return after


def of_arrays(fn, x, before):
    sure, tokens = x.softmax(-1).max(-1)
    taken = fn(sure.numpy(), (before == MASK).numpy(), 0.8)
    return torch.where(torch.from_numpy(numpy.asarray(taken)), tokens, before)


def of_requests(remasking, x, before):
    rows = [remasking.apply(input_draft=row.tolist(), logits=logits) for row, logits in zip(before, x, strict=True)]
    return torch.tensor([list(row.committed_token_ids or row.next_input_block) for row in rows])


def selector(known):
    return Selector(known, mask_id=MASK, vocabulary=VOCABULARY)


ENGINES = [
    Engine(
        "get_transfer_index",
        lambda x, before: committed(stand_ins.transfer_index, x, before),
        lambda x, before, known: committed(
            transfer_index.ordered(stand_ins.transfer_index, selector(known)), x, before
        ),
    ),
    Engine(
        "batched_remask",
        lambda x, before: stand_ins.batched_remask(x, before, MASK, 0.7)[0],
        lambda x, before, known: vllm.ordered(stand_ins.batched_remask, selector(known))(x, before, MASK, 0.7)[0],
    ),
    Engine(
        "RemaskingPolicy",
        lambda x, before: of_requests(stand_ins.SurestTwo(), x, before),
        lambda x, before, known: of_requests(vllm.OrderedPolicy(stand_ins.SurestTwo(), selector(known)), x, before),
    ),
    Engine(
        "UnmaskingProcessor",
        lambda x, before: of_unmasking(stand_ins.Unmasking(12), x, before),
        lambda x, before, known: of_unmasking(
            lmdeploy.OrderedUnmasking(stand_ins.Unmasking(12), selector(known)), x, before
        ),
    ),
    Engine(
        "ParallelDecoder",
        lambda x, before: of_decoder(stand_ins.Decoder(), x, before),
        lambda x, before, known: of_decoder(dinfer.OrderedDecoder(stand_ins.Decoder(), selector(known)), x, before),
    ),
    Engine(
        "unmasking_fn",
        lambda x, before: of_positions(stand_ins.unmasking_fn, x, before),
        lambda x, before, known: of_positions(d2cache.ordered(stand_ins.unmasking_fn, selector(known)), x, before),
    ),
    Engine(
        "transfer_mask",
        lambda x, before: of_arrays(stand_ins.mlx_transfer_mask, x, before),
        lambda x, before, known: of_arrays(
            mlx_vlm.Ordered(stand_ins.mlx_transfer_mask, selector(known), numpy), x, before
        ),
    ),
]
# Batches of one on the host, and arrays of another library, whose reads are counted below.
ON_THE_HOST = ("RemaskingPolicy", "transfer_mask")
each = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


@each
@pytest.mark.parametrize("known", [None, dprm.Order().policy()], ids=["no policy", "an empty policy"])
def test_an_empty_policy_is_the_engines_own_order_ties_included(engine, known):
    for seed in range(30):
        x, before = states(seed)
        assert torch.equal(engine.ordered(x, before, known), engine.own(x, before))


@each
def test_a_policy_changes_which_and_never_how_many(engine):
    changed, known = 0, policy()
    for seed in range(30):
        x, before = states(seed)
        own, ours = engine.own(x, before), engine.ordered(x, before, known)
        assert torch.equal((ours == MASK).sum(1), (own == MASK).sum(1))
        assert torch.equal(ours[before != MASK], before[before != MASK])
        revealed = (ours != before) & (before == MASK)
        assert torch.equal(ours[revealed], x.argmax(-1)[revealed])
        changed += int((ours != own).any(1).sum())
    assert changed > 20


@each
def test_a_row_is_treated_alike_in_every_batch(engine):
    known = policy()
    for seed in range(5):
        x, before = states(seed)
        together = engine.ordered(x, before, known)
        for row in range(len(x)):
            assert torch.equal(engine.ordered(x[[row]], before[[row]], known)[0], together[row])


@pytest.mark.parametrize("engine", [e for e in ENGINES if e.name not in ON_THE_HOST], ids=lambda engine: engine.name)
def test_no_wait_is_added_to_a_step(engine, monkeypatch):
    x, before = states(0)
    known = policy()
    engine.ordered(x, before, known)
    counts = []
    for run in (engine.own, lambda x, before: engine.ordered(x, before, known)):
        with as_on_an_accelerator(monkeypatch) as counted:
            run(x, before)
        counts.append(counted.count)
    # A policy is brought to its device once, when it is first used; here that is inside the count.
    with as_on_an_accelerator(monkeypatch) as counted:
        once = selector(known)
        once.order._tilt(torch.device("cpu"), 1.0)
    assert counts[1] - counted.count <= counts[0]


def test_a_sampler_without_a_hook_is_reached_through_topk():
    from tests.contrib.test_diffusers import Model

    net = Model()
    model = lambda x: net(x, None, torch.arange(x.shape[1]).expand_as(x)).logits  # noqa: E731
    changed = 0
    for seed in range(10):
        _, before = states(seed)
        own = sampler_with_topk.sample(model, before, 3, 6)
        for known in (None, dprm.Order().policy()):
            with topk.attached(sampler_with_topk, selector(known), block=6):
                assert torch.equal(sampler_with_topk.sample(model, before, 3, 6), own)
        with topk.attached(sampler_with_topk, selector(policy()), block=6):
            ours = sampler_with_topk.sample(model, before, 3, 6)
            alone = sampler_with_topk.sample(model, before[[2]], 3, 6)
        assert not (ours == MASK).any()
        assert torch.equal(alone[0], ours[2])
        changed += int(not torch.equal(ours, own))
    assert changed
    assert sampler_with_topk.torch is torch


def test_what_was_replaced_comes_back_also_after_an_error():
    module = SimpleNamespace(get_transfer_index=stand_ins.transfer_index)
    with transfer_index.attached(module, selector(policy())):
        assert module.get_transfer_index is not stand_ins.transfer_index
    assert module.get_transfer_index is stand_ins.transfer_index
    with pytest.raises(ZeroDivisionError), transfer_index.attached(module, selector(policy())):
        1 / 0  # noqa: B018
    assert module.get_transfer_index is stand_ins.transfer_index
    decoder = stand_ins.Decoder()
    with replaced(decoder, "decode", None):
        assert decoder.decode is None
    assert "decode" not in vars(decoder)
    with pytest.raises(AttributeError, match="has no get_transfer_index: this adapter was written for another"):
        transfer_index.attached(SimpleNamespace(), selector(None)).__enter__()


def test_generation_of_d2cache_is_reached_through_its_step():
    x, before = states(0)

    def generate_step(model, unmasking_fn):
        return of_positions(unmasking_fn, x, before)

    module = SimpleNamespace(generate_step=generate_step)
    own = generate_step(None, stand_ins.unmasking_fn)
    with d2cache.attached(module, selector(policy())):
        ours = module.generate_step(None, unmasking_fn=stand_ins.unmasking_fn)
    assert not torch.equal(own, ours)
    assert module.generate_step is generate_step


def test_acceptance_of_mlx_vlm_is_reached_through_its_module():
    module = SimpleNamespace(_diffusion_confidence_transfer_mask=stand_ins.mlx_transfer_mask)
    x, before = states(0)
    with mlx_vlm.attached(module, selector(policy()), numpy):
        ours = of_arrays(module._diffusion_confidence_transfer_mask, x, before)
    assert torch.equal(ours, ENGINES[-1].ordered(x, before, policy()))


@pytest.mark.parametrize("recorded", [False, True])
def test_arrays_of_mlx_vlm_are_read_when_the_engine_has_looked_at_them(recorded, tmp_path, monkeypatch):
    """A step reads nothing of its own; what is traced is what the order chooses when it may look."""
    known, reads = policy(), []
    monkeypatch.setattr(mlx_vlm, "_read", lambda array: reads.append(array) or torch.from_numpy(numpy.array(array)))
    monkeypatch.setattr(Selector, "select", None)
    module = SimpleNamespace(_diffusion_confidence_transfer_mask=stand_ins.mlx_transfer_mask)
    choosing = Selector(known, mask_id=MASK, traces=tmp_path if recorded else None)
    revealed = 0
    with mlx_vlm.attached(module, choosing, numpy) as watch:
        for seed in range(4):
            x, before = states(seed)
            watch.name([f"{seed}-{row}" for row in range(len(x))])
            sure = x.softmax(-1).amax(-1).numpy()
            chosen = module._diffusion_confidence_transfer_mask(sure, (before == MASK).numpy(), 0.8)
            assert all(array is not sure and array is not chosen for array in reads)
            revealed += int(chosen.sum())
    assert bool(reads) == recorded
    if recorded:
        choosing.traces.flush()
        (shard,) = tmp_path.iterdir()
        _, columns, header = read_shard(shard)
        assert len(columns["cell"]) == revealed
        assert header["requests"][0] == "0-0"
        assert header["requests"][-1] == "3-5"


@pytest.mark.parametrize("settings", [{"rule": "soft_bon"}, {"signal": "odds"}])
def test_an_order_that_has_to_look_still_chooses_for_mlx_vlm(settings):
    x, before = states(0)
    own = of_arrays(stand_ins.mlx_transfer_mask, x, before)
    ours = of_arrays(mlx_vlm.Ordered(stand_ins.mlx_transfer_mask, selector(policy(**settings)), numpy), x, before)
    assert torch.equal((ours == MASK).sum(1), (own == MASK).sum(1))


def test_a_block_begins_where_more_is_masked_than_before():
    watch = Watch()
    masked = torch.ones(2, 4, dtype=torch.bool)
    first = watch.requests(masked)
    masked = masked.clone()
    masked[:, 0] = False
    second = watch.requests(masked)
    assert second.progress(masked).tolist() == [0.25, 0.25]
    masked[0] = True
    third = watch.requests(masked)
    assert third.progress(masked).tolist() == [0.0, 0.25]
    assert first.seeds()[1] == third.seeds()[1] != third.seeds()[0]
    watch.name(["a", "b"])
    assert watch.requests(masked).names == ("a", "b")
    watch.name(["a"])
    with pytest.raises(ValueError, match="names has 1 requests: expected 2"):
        watch.requests(masked)


def test_what_an_adapter_cannot_do_is_an_error():
    weight = torch.ones(len(features(1, 4)))
    head = selector(dprm.Order(head=Head(weight, support=9), ready=1).policy())
    for attach in (lambda: topk.attached(sampler_with_topk, head, 6), lambda: mlx_vlm.attached(None, head, None)):
        with pytest.raises(ValueError, match="this sampler shows only confidence"):
            attach().__enter__()
    with pytest.raises(ValueError, match="selector has no vocabulary"):
        topk.attached(sampler_with_topk, Selector(None, mask_id=MASK), 6).__enter__()
    warm = stand_ins.Decoder()
    warm.temperature = 0.5
    with pytest.raises(ValueError, match=r"temperature is 0\.5: expected 0"):
        dinfer.OrderedDecoder(warm, selector(None))
    warm.temperature, warm.mask_id = 0.0, 3
    with pytest.raises(ValueError, match="decoder has mask_id 3: expected that of the selector, 8"):
        dinfer.OrderedDecoder(warm, selector(None))
    x, before = states(0)
    remask = vllm.ordered(stand_ins.batched_remask, selector(policy()))
    with pytest.raises(ValueError, match="temperature is not 0"):
        remask(x, before, MASK, 0.7, 0.5)
    with pytest.raises(ValueError, match="mask_token_id is 3: expected that of the selector, 8"):
        remask(x, before, 3, 0.7)
