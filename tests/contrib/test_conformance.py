"""What every adapter keeps: the same tests for all of them, on stand-ins of the engines' signatures."""

from types import SimpleNamespace

import numpy
import pytest
import torch

import dprm
from dprm.contrib import d2cache, dinfer, dmpo, mdlm, mlx_vlm, moco, puma, topk, transfer_index, vllm
from dprm.contrib.dcm import ScoreModel
from dprm.contrib.replaced import replaced
from dprm.contrib.selector import Selector
from dprm.contrib.watch import Watch
from dprm.fit.traces import read_shard
from dprm.order.features import names as features
from dprm.order.head import Head
from dprm.order.policy import PolicyError
from tests.contrib import sampler_with_topk, stand_ins
from tests.contrib.adapters import ENGINES, STEPS, of_arrays, of_positions, selector
from tests.contrib.engines import MASK, as_on_an_accelerator, policy, states


def by_name(engine):
    return engine.name


def a_head(engine):
    weight = torch.randn(len(features(1, 4)), generator=torch.Generator().manual_seed(0))
    return dprm.Order(head=Head(weight, support=1000), ready=1, signal=engine.signal).policy()


def added_waits(engine, made, x, before, monkeypatch):
    """How often an adapter waits more than its engine by itself, once a policy was brought to its device."""
    engine.ordered(x, before, made)
    counts = []
    for run in (lambda: engine.own(x, before), lambda: engine.ordered(x, before, made)):
        with as_on_an_accelerator(monkeypatch) as counted:
            run()
        counts.append(counted.count)
    return counts[1] - counts[0]


each = pytest.mark.parametrize("engine", ENGINES, ids=by_name)
each_step = pytest.mark.parametrize("engine", STEPS, ids=by_name)
# What there is to choose by: a table, one that draws, and a head.
CHOOSING = {
    "table": lambda engine: policy(signal=engine.signal),
    "drawn": lambda engine: policy(signal=engine.signal, rule="soft_bon"),
    "head": a_head,
}


@each
@pytest.mark.parametrize("kept", ["nothing", "an empty policy", "traces"])
def test_an_empty_policy_is_the_engines_own_order_ties_included(engine, kept, tmp_path):
    known = dprm.Order(signal=engine.signal).policy() if kept == "an empty policy" else None
    for seed in range(10):
        x, before = states(seed)
        own = engine.own(x, before)
        for _ in range(2):
            made = selector(known, tmp_path, kept == "traces", signal=engine.signal)
            assert torch.equal(engine.ordered(x, before, made), own)


@each
def test_a_policy_changes_which_and_never_how_many(engine):
    changed, made = 0, selector(policy(signal=engine.signal), signal=engine.signal)
    for seed in range(20):
        x, before = states(seed)
        own, ours = engine.own(x, before), engine.ordered(x, before, made)
        assert torch.equal((ours == MASK).sum(1), (own == MASK).sum(1))
        changed += int((ours != own).any(1).sum())
    assert changed > 10


@each_step
def test_a_step_reveals_what_is_most_probable_and_leaves_the_rest(engine):
    made = selector(policy())
    for seed in range(20):
        x, before = states(seed)
        ours = engine.ordered(x, before, made)
        assert torch.equal(ours[before != MASK], before[before != MASK])
        revealed = (ours != before) & (before == MASK)
        assert torch.equal(ours[revealed], x.argmax(-1)[revealed])


@each
@pytest.mark.parametrize("what", CHOOSING)
def test_a_row_does_not_depend_on_its_neighbours(engine, what):
    if what == "head" and not engine.head:
        return
    known = CHOOSING[what](engine)
    others = torch.tensor([0, 5, 4, 3, 2, 1])
    for seed in range(5):
        x, before = states(seed)
        together = engine.ordered(x, before, selector(known, signal=engine.signal))
        mixed = engine.ordered(x[others], before[others], selector(known, signal=engine.signal))
        assert torch.equal(mixed[0], together[0])
        for row in range(len(x)) if engine.alone and what != "drawn" else ():
            alone = engine.ordered(x[[row]], before[[row]], selector(known, signal=engine.signal))
            assert torch.equal(alone[0], together[row])


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if not engine.arrays], ids=by_name)
@pytest.mark.parametrize("recorded", [False, True], ids=["choosing", "recording"])
@pytest.mark.parametrize("what", CHOOSING)
def test_no_wait_is_added_to_a_step(engine, what, recorded, tmp_path, monkeypatch):
    """Nor to a whole generation; what an adapter has to wait for is said in the table."""
    if what == "head" and not engine.head:
        return
    x, before = states(0)
    made = selector(CHOOSING[what](engine), tmp_path, recorded, signal=engine.signal)
    assert added_waits(engine, made, x, before, monkeypatch) <= engine.waits


@pytest.mark.parametrize("engine", [each for each in ENGINES if each.head and each.name != "dcm"], ids=by_name)
def test_an_engine_that_shows_logits_writes_what_a_head_is_learned_from(engine, tmp_path, monkeypatch):
    x, before = states(0)
    made = selector(None, tmp_path, True, signal=engine.signal, explore=True, contrasts=True)
    assert added_waits(engine, made, x, before, monkeypatch) <= engine.waits
    made.traces.flush()
    (shard,) = tmp_path.iterdir()
    contrast = read_shard(shard)[1]["contrast"]
    assert contrast.shape[1] == len(features(1, 4))
    assert contrast.any()


@each
def test_a_policy_that_was_saved_chooses_alike(engine, tmp_path):
    known = policy(signal=engine.signal)
    known.save(tmp_path / "known.dprm")
    made = selector(tmp_path / "known.dprm", signal=engine.signal)
    made.policy.save(tmp_path / "again.dprm")
    assert (tmp_path / "again.dprm").read_bytes() == (tmp_path / "known.dprm").read_bytes()
    x, before = states(3)
    expected = engine.ordered(x, before, selector(known, signal=engine.signal))
    assert torch.equal(engine.ordered(x, before, made), expected)


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if "mask" in engine.shows], ids=by_name)
def test_a_model_with_another_mask_is_refused(engine):
    x, before = states(0)
    other = Selector(policy(signal=engine.signal), mask_id=77, signal=engine.signal)
    with pytest.raises(ValueError, match=r"expected that of the selector, 77|no mask 77|expected 78, the bins"):
        engine.ordered(x, before, other)


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if "vocabulary" in engine.shows], ids=by_name)
def test_a_model_with_another_vocabulary_is_refused(engine):
    x, before = states(0)
    other = Selector(policy(signal=engine.signal), mask_id=MASK, vocabulary=50, signal=engine.signal)
    with pytest.raises(ValueError, match="logits has 9 tokens: expected the vocabulary of 50"):
        engine.ordered(x, before, other)
    fitted = policy(signal=engine.signal)
    fitted.notes["vocabulary"] = "50"
    with pytest.raises(PolicyError, match="fitted with vocabulary = 50, and this model has 9"):
        engine.ordered(x, before, Selector(fitted, mask_id=MASK, signal=engine.signal))


def test_a_model_without_a_mask_is_refused():
    known = selector(policy())
    for attach, owner in (
        (moco.attached, SimpleNamespace(mask_index=None)),
        (mdlm.attached, SimpleNamespace()),
        (puma.attached, SimpleNamespace(mask_id=None)),
    ):
        with pytest.raises(ValueError, match="None: dprm chooses among masked positions"):
            attach(owner, known).__enter__()
    with pytest.raises(ValueError, match="decoder has mask_id None: dprm chooses"):
        dinfer.OrderedDecoder(SimpleNamespace(mask_id=None), known)
    trainer = SimpleNamespace(generate=stand_ins.transfer_index)
    with (
        dmpo.attached(trainer, known, SimpleNamespace(get_transfer_index=None)),
        pytest.raises(ValueError, match="trainer generates with mask_id None: dprm chooses"),
    ):
        trainer.generate(mask_id=None)
    with pytest.raises(TypeError, match="mask_id is None: expected a whole number"):
        ScoreModel(lambda tokens, sigma: tokens, None)


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


def test_the_draft_that_vllm_goes_on_with_is_the_one_it_was_given():
    x, before = states(0)
    remask = vllm.ordered(stand_ins.batched_remask, selector(policy()))
    expected = remask(x, before, MASK, 0.7)[0]
    assert not torch.equal(expected, stand_ins.batched_remask(x, before, MASK, 0.7)[0])
    for out in (torch.empty_like(before), before):
        draft, _, _ = remask(logits=x, input_draft=before, mask_token_id=MASK, threshold=0.7, out=out)
        assert draft is out
        assert torch.equal(out, expected)


def test_rows_of_d2cache_are_named_without_a_look_while_all_are_active(monkeypatch):
    watch, masked = Watch(), torch.ones(3, 4, dtype=torch.bool)
    watch.name(["a", "b", "c"])
    with as_on_an_accelerator(monkeypatch) as counted:
        assert watch.mixed(masked, 4, torch.arange(3)).names == ("a", "b", "c")
    assert counted.count == 0
    assert watch.mixed(masked[:2], 4, torch.tensor([0, 2])).names == ("a", "c")


def test_acceptance_of_mlx_vlm_is_reached_through_its_module():
    module = SimpleNamespace(_diffusion_confidence_transfer_mask=stand_ins.mlx_transfer_mask)
    x, before = states(0)
    with mlx_vlm.attached(module, selector(policy()), numpy):
        ours = of_arrays(module._diffusion_confidence_transfer_mask, x, before)
    assert torch.equal(ours, STEPS[-1].ordered(x, before, selector(policy())))


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
