"""The objective of SDPO: what it pulls towards, and that model and reference see the same masks."""

import pytest
import torch

from dprm.train.denoiser import Denoiser
from dprm.train.masks import Canvases
from dprm.train.sdpo import Sdpo
from dprm.train.transformer import Config, Transformer

MASK = 4


def canvases(rows=6, length=8, seed=0):
    draw = torch.Generator().manual_seed(seed)
    clean = torch.randint(0, 4, (rows, length), generator=draw)
    masked = torch.rand(rows, length, generator=draw) < 0.5
    masked[:, 0] = True
    return Canvases(clean, clean.masked_fill(masked, MASK), masked)


def small(seed=0):
    return Transformer(Config(5, width=32, depth=1, heads=2), seed=seed)


def share_of_first(tokens):
    return (tokens == 0).double().mean(1)


def test_a_model_that_is_its_reference_is_judged_by_the_rewards_alone_whatever_is_masked():
    model = small()
    objective = Sdpo(Denoiser(small()), share_of_first)
    for seed in (0, 1):
        shown = canvases(seed=0)
        other = canvases(seed=seed)
        shown = Canvases(shown.clean, shown.clean.masked_fill(other.masked, MASK), other.masked)
        weight = (10.0 * share_of_first(shown.clean)).softmax(0)
        loss = objective(model(shown.noisy), shown)
        torch.testing.assert_close(loss, (weight * (weight * 6).log()).sum(), atol=1e-6, rtol=1e-6)


def test_equal_rewards_leave_the_reference_alone():
    model, shown = small().train(), canvases()
    loss = Sdpo(Denoiser(small()), lambda tokens: torch.full((len(tokens),), 0.3))(model(shown.noisy), shown)
    assert abs(loss.item()) < 1e-12
    torch.autograd.backward(loss)
    assert max(float(weight.grad.abs().max()) for weight in model.parameters()) < 1e-7


def test_the_divergence_is_least_where_the_ratios_are_the_tilted_rewards():
    objective = Sdpo(Denoiser(small()), share_of_first, scale=3.0)
    reward = torch.tensor([0.1, 0.7, 0.4])
    assert objective.divergence(3.0 * reward + 5.0, reward).item() == pytest.approx(0.0, abs=1e-9)
    assert objective.divergence(-3.0 * reward, reward).item() > 0.1
    ratio = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    torch.autograd.backward(objective.divergence(ratio, reward))
    torch.testing.assert_close(ratio.grad, torch.full((3,), 1 / 3).double() - (3.0 * reward.double()).softmax(0))


def test_rewarded_sequences_become_likelier_than_under_the_reference():
    reference, model = small(), small().requires_grad_(True)
    objective = Sdpo(Denoiser(reference), share_of_first)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(40):
        shown = canvases(rows=32, seed=step)
        loss = objective(model(shown.noisy), shown)
        torch.autograd.backward(loss)
        optimiser.step(), optimiser.zero_grad()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    blank = torch.full((1, 8), MASK)
    first = [each(blank)[..., :4].softmax(-1)[..., 0].mean().item() for each in (reference, model)]
    assert first[1] > first[0] + 0.1


def test_settings_that_mean_nothing_are_refused():
    for setting in ({"beta": 0.0}, {"scale": -1.0}):
        with pytest.raises(ValueError, match=next(iter(setting))):
            Sdpo(Denoiser(small()), share_of_first, **setting)
    with pytest.raises(ValueError, match="reward has shape"):
        Sdpo(Denoiser(small()), lambda tokens: torch.zeros(2))(small()(canvases().noisy), canvases())
