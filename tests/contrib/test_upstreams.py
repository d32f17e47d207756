"""The hosts of the paper, attached without a file of theirs being overwritten: stand-ins with their signatures."""

from types import SimpleNamespace

import pytest
import torch

import dprm
from dprm.contrib import dmpo, dplm, mdlm, moco, puma, topk
from dprm.contrib.dcm import ScoreModel
from dprm.contrib.dream import OrderHook
from dprm.decode import Even
from tests.contrib import upstreams
from tests.contrib.adapters import selector
from tests.contrib.engines import MASK, VOCABULARY, as_on_an_accelerator, policy, states

NOTHING = pytest.mark.parametrize("recorded", [False, True], ids=["idle", "recording"])


@NOTHING
def test_dream_through_its_own_hook(tmp_path, recorded):
    net, changed = upstreams.Net(), 0
    for seed in range(10):
        _, x = states(seed)
        own = upstreams.dream(net, x, 4)
        assert torch.equal(upstreams.dream(net, x, 4, OrderHook(selector(None, tmp_path, recorded))), own)
        ours = upstreams.dream(net, x, 4, OrderHook(selector(policy())))
        assert not (ours == MASK).any()
        changed += int((ours != own).any(1).sum())
    assert changed > 5
    with pytest.raises(ValueError, match="the host has to call its hook with None first"):
        OrderHook(selector(None))(0, x, torch.zeros(6, 12, VOCABULARY))


def test_a_hook_reveals_tokens_of_a_host_that_shapes_its_logits():
    x, before = states(0)
    hook = OrderHook(selector(policy()), tokens=lambda text, logits: torch.full_like(text, 3))
    hook(None, before, None)
    taken = torch.zeros_like(before, dtype=torch.bool)
    taken[torch.arange(6), (before == MASK).int().argmax(1)] = True
    after = hook(0, torch.where(taken, 5, before), x)
    shown = after[(before == MASK) & (after != MASK)]
    assert set(shown.tolist()) == {3, 5}


@NOTHING
def test_moco_with_its_noise(tmp_path, recorded):
    settings = {"curr_step": 1, "num_steps": 12, "randomness": 0.3, "num_tokens_unmask": 2}
    host, changed = upstreams.Mdlm(), 0
    for seed in range(20):
        x, before = states(seed)
        torch.manual_seed(seed)
        own = host.step_confidence(x, before, **settings)
        with moco.attached(host, selector(None, tmp_path, recorded)):
            torch.manual_seed(seed)
            assert torch.equal(host.step_confidence(x, before, **settings), own)
        with moco.attached(host, selector(policy())):
            torch.manual_seed(seed)
            ours = host.step_confidence(x, before, **settings)
        assert torch.equal((ours == MASK).sum(1), (own == MASK).sum(1))
        same = (ours != MASK) & (own != MASK)
        # What is drawn does not depend on which position is taken.
        assert torch.equal(ours[same], own[same])
        changed += int((ours != own).any(1).sum())
    assert changed > 10
    assert "step_confidence" not in vars(host)
    with pytest.raises(ValueError, match="mdlm has mask_index 3"):
        moco.attached(SimpleNamespace(mask_index=3), selector(None)).__enter__()


def test_moco_tells_the_policy_the_classes_of_what_was_drawn():
    order = dprm.Order(phases=1, bins=1, aux=2, ready=1, baseline="global")
    stats = dprm.Stats(order.cells, order.beta)
    stats.add(torch.tensor([0, 1] * 50), torch.tensor([0.0, 1.0] * 50, dtype=torch.float64))
    order.merge(stats)
    known = dprm.Order.from_policy(order.policy(), guidance=50.0).policy()
    host, (x, before) = upstreams.Mdlm(), states(0)
    with moco.attached(host, selector(known), state_of=lambda tokens: (tokens == 4).long()):
        torch.manual_seed(0)
        after = host.step_confidence(x, before, 0, 12)
    torch.manual_seed(0)
    drawn = torch.distributions.Categorical(probs=host._subs_parameterization(x, before).exp()).sample()
    for row in range(6):
        if (drawn[row][before[row] == MASK] == 4).any():
            assert (after[row][before[row] == MASK] == 4).sum() == 1


def competing(host, seed, strategy="reparam-uncond-deterministic-linear"):
    """A state in the middle of a decoding of two modalities: some visible, all drawn anew."""
    generator = torch.Generator().manual_seed(seed)
    rows, length = 4, 16
    kind = (torch.arange(length) >= 8).long().expand(rows, length)
    special = torch.arange(length) % 8 > 0
    hidden = (torch.rand(rows, length, generator=generator) < 0.6) & special
    tokens = torch.randint(7, (rows, length), generator=generator)
    masks = torch.where(kind == 0, host.aa_mask_id, host.struct_mask_id)
    scores = -torch.rand(rows, length, generator=generator).mul(8).round() / 4
    return {
        "output_tokens": torch.where(hidden, masks, tokens),
        "output_scores": torch.where(hidden, -torch.inf, scores),
        "cur_tokens": torch.randint(7, (rows, length), generator=generator),
        "cur_scores": -torch.rand(rows, length, generator=generator).mul(8).round() / 4,
        "decoding_strategy": strategy,
        "xt_neq_x0": hidden,
        "type_ids": kind,
        "non_special_sym_mask": special.expand(rows, length),
        "t": 5,
        "max_step": 10,
    }


@NOTHING
def test_dplm_where_visible_positions_compete(tmp_path, recorded):
    host, changed = upstreams.Dplm(), 0
    for seed in range(20):
        given = competing(host, seed)
        own = host._reparam_decoding(**competing(host, seed))
        with dplm.attached(host, selector(None, tmp_path, recorded)):
            for mine, theirs in zip(host._reparam_decoding(**competing(host, seed)), own, strict=True):
                assert torch.equal(mine, theirs)
        with dplm.attached(host, selector(policy()), bits=3):
            hidden, tokens, scores = host._reparam_decoding(**competing(host, seed))
        for kind, mask in ((0, host.aa_mask_id), (1, host.struct_mask_id)):
            here = (given["type_ids"] == kind) & given["non_special_sym_mask"]
            assert torch.equal((hidden & here).sum(1), (own[0] & here).sum(1))
            assert (tokens[hidden & here] == mask).all()
            assert (scores[hidden & here] == -torch.inf).all()
        stays, appears = ~hidden & ~given["xt_neq_x0"], ~hidden & given["xt_neq_x0"]
        assert torch.equal(tokens[stays], given["output_tokens"][stays])
        assert torch.equal(tokens[appears], given["cur_tokens"][appears])
        assert torch.equal(scores[appears], given["cur_scores"][appears])
        changed += int((hidden != own[0]).any(1).sum())
    assert changed > 10
    with (
        dplm.attached(host, selector(policy())),
        pytest.raises(ValueError, match="its noise is not shown"),
    ):
        host._reparam_decoding(**competing(host, 0, "reparam-uncond-stochastic1.0-linear"))


@NOTHING
@pytest.mark.parametrize("process", [False, True])
def test_mdlm_reveals_by_chance_and_chooses_by_policy(tmp_path, recorded, process):
    net, changed = upstreams.Net(), 0
    host = upstreams.Diffusion(net)
    known = policy(signal="random")
    for seed in range(20):
        _, x = states(seed)
        t = torch.full((6, 1), 0.6)
        torch.manual_seed(seed)
        own = host._ddpm_update(x, t, 0.2, process)
        with mdlm.attached(host, selector(None, tmp_path, recorded, signal="random")):
            torch.manual_seed(seed)
            result = host._ddpm_update(x, t, 0.2, process)
        assert torch.equal(result[0] if process else result, own[0] if process else own)
        calls = net.calls
        with mdlm.attached(host, selector(known, signal="random")):
            torch.manual_seed(seed)
            ours = host._ddpm_update(x, t, 0.2, process)
        assert net.calls == calls + 1
        ours, own = (ours[0], own[0]) if process else (ours, own)
        assert torch.equal((ours == MASK).sum(1), (own == MASK).sum(1))
        assert torch.equal(ours[x != MASK], x[x != MASK])
        changed += int((ours != own).any(1).sum())
    assert changed > 20
    assert "forward" not in vars(host)
    with pytest.raises(
        dprm.order.PolicyError, match="corrects the order by confidence, and this engine ranks by random"
    ):
        selector(policy(), signal="random")


def test_dcm_as_a_model_of_the_loop(monkeypatch):
    net, seen = upstreams.Net(), []

    def score(tokens, sigma):
        seen.append(sigma)
        return net(tokens)

    model = ScoreModel(score, MASK)
    result = dprm.decode(model, torch.full((2, 12), MASK), mask_id=MASK, budget=Even(4))
    assert not (result.tokens == MASK).any()
    shares = [1 - torch.exp(-sigma)[0].item() for sigma in seen]
    assert shares == pytest.approx([0.999, 0.75, 0.5, 0.25], abs=1e-5)
    with pytest.raises(ValueError, match="tokens has 9: the mask 8 has to be above every bin"):
        model(torch.full((1, 2), 9))
    with as_on_an_accelerator(monkeypatch) as counted:
        model(torch.full((2, 12), MASK))
    assert counted.count == 0
    with pytest.raises(ValueError, match="score gives 8 columns: expected 9, the bins and then the mask 8"):
        ScoreModel(lambda tokens, sigma: net(tokens)[..., :8], MASK)(torch.full((1, 2), MASK))


@NOTHING
def test_the_pool_of_puma_reveals_true_tokens_along_a_policy(tmp_path, recorded):
    changed = 0
    for seed in range(10):
        x, before = states(seed)
        truth = torch.where(before == MASK, 3, before)
        pools = [upstreams.PhasedMasking(truth, before) for _ in range(3)]
        for pool, each in zip(pools, (None, selector(None, tmp_path, recorded), selector(policy())), strict=True):
            torch.manual_seed(seed)
            if each is None:
                pool.update_with_logits(x.log_softmax(-1))
                continue
            with puma.attached(pool, each):
                pool.update_with_logits(x.log_softmax(-1))
            assert "update_with_logits" not in vars(pool)
        own, same, ours = pools
        assert torch.equal(same.xt, own.xt)
        assert torch.equal(ours.fresh, own.fresh)
        assert torch.equal((ours.xt == MASK).sum(1), (own.xt == MASK).sum(1))
        assert torch.equal(ours.xt[ours.xt != MASK], truth[ours.xt != MASK])
        changed += int((ours.xt != own.xt).any(1).sum())
    assert changed > 5


@NOTHING
def test_the_rollouts_of_dmpo(tmp_path, recorded):
    net, changed = upstreams.Net(), 0
    trainer = SimpleNamespace(generate=upstreams.generate)
    for seed in range(10):
        _, x = states(seed)
        own = upstreams.generate(net, x, steps=4)
        with dmpo.attached(trainer, selector(None, tmp_path, recorded)):
            assert torch.equal(trainer.generate(model=net, prompt=x, steps=4), own)
        with dmpo.attached(trainer, selector(policy())):
            ours = trainer.generate(model=net, prompt=x, steps=4)
            # An evaluation beside the trainer stays as it is.
            assert torch.equal(upstreams.generate(net, x, steps=4), own)
        changed += int((ours != own).any(1).sum())
    assert changed > 5
    assert trainer.generate is upstreams.generate


@pytest.mark.parametrize("threshold", [0.6, 2.0])
def test_the_search_of_prism(tmp_path, threshold):
    net, changed = upstreams.Net(), 0
    for seed in range(10):
        _, x = states(seed)
        own = upstreams.hierarchical(net, x, threshold)
        with topk.attached(upstreams, selector(None, tmp_path, True), block=12):
            assert torch.equal(upstreams.hierarchical(net, x, threshold), own)
        with topk.attached(upstreams, selector(policy()), block=12):
            ours = upstreams.hierarchical(net, x, threshold)
        assert not (ours == MASK).any()
        changed += int((ours != own).any(1).sum())
    assert changed
