"""Drawing tokens: noise where something is masked, and nowhere else."""

from importlib import import_module

import pytest
import torch

import dprm
from dprm.order import noise
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas


@pytest.mark.parametrize(
    ("how", "kept"),
    [({"top_p": 0.7}, 3), ({"top_p": 0.3}, 1), ({"top_k": 2}, 2), ({"top_p": 0.9, "top_k": 3}, 3), ({}, 5)],
)
def test_draws_follow_the_truncated_law(how, kept):
    """Of .35, .25, .2, .15, .05, as a temperature of 2 makes them: the fewest that hold top_p, and at most top_k."""
    law = torch.tensor([0.15, 0.35, 0.05, 0.25, 0.2])
    drawn = dprm.decode(
        lambda tokens: (2.0 * torch.cat([law, law[:1]]).log()).expand(*tokens.shape, 6),
        torch.full((20_000, 1), 5),
        mask_id=5,
        temperature=2.0,
        seed=torch.arange(20_000),
        **how,
    )
    inside = torch.isin(torch.arange(5), law.argsort(descending=True)[:kept])
    expected = torch.where(inside, law, 0.0) / law[inside].sum()
    seen = drawn.tokens.flatten().bincount(minlength=5) / 20_000
    assert torch.equal(seen > 0, inside)
    torch.testing.assert_close(seen, expected, atol=0.015, rtol=0)


def test_a_large_vocabulary_leaves_nothing_large_behind():
    noise._kept_indices.cache_clear()
    stream = noise.Stream(torch.tensor([5]), 0.0, 1, torch.device("cpu"))
    for length in (5, 6, 7):
        stream.log_uniform(length * 300_000, noise.TOKEN)
    assert noise._kept_indices.cache_info().currsize == 0


def test_noise_is_made_for_masked_positions_alone(monkeypatch):
    drawn = []
    made = noise._log_uniform
    monkeypatch.setattr(
        noise, "_log_uniform", lambda x, keys, version: drawn.append(x.numel()) or made(x, keys, version)
    )
    dprm.decode(MockDenoiser(), masked_canvas(2, 12), mask_id=MASK, budget=5, temperature=1.0)
    assert drawn == [2 * 10 * 7, 2 * 5 * 7]


def test_models_may_give_logits_bare_in_a_tuple_or_in_an_output():
    canvas, model = masked_canvas(2, 8), MockDenoiser()

    class Output:
        def __init__(self, logits):
            self.logits = logits

    plain = dprm.decode(model, canvas, mask_id=MASK).tokens
    for wrap in (lambda logits: (logits, None), lambda logits: [logits], Output):
        assert torch.equal(
            dprm.decode(lambda tokens, wrap=wrap: wrap(model(tokens)), canvas, mask_id=MASK).tokens, plain
        )


def test_where_masked_positions_cannot_be_looked_at_the_same_tokens_are_drawn(monkeypatch):
    """On an accelerator to know them would be to wait for it."""
    canvas, how = masked_canvas(3, 12), {"mask_id": MASK, "temperature": 0.9, "top_p": 0.8, "seed": torch.arange(3)}
    here = dprm.decode(MockDenoiser(), canvas, **how)
    monkeypatch.setattr(import_module("dprm.decode.reader"), "can_look", lambda logits: False)
    there = dprm.decode(MockDenoiser(), canvas, **how)
    assert torch.equal(here.tokens, there.tokens)
    assert torch.equal(here.step_map, there.step_map)
