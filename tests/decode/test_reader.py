"""Drawing tokens: noise where something is masked, and nowhere else."""

from dataclasses import replace

import torch

import dprm
from dprm.decode.loop import _Noise
from dprm.decode.state import State
from dprm.order import noise
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas


def some_noise(rows=4, length=9):
    canvas = masked_canvas(rows, length, prompt=3)
    state = State.start(canvas, MASK, torch.arange(rows))
    return _Noise(replace(state, redrawn=torch.arange(rows * length).view(rows, length).int() % 3), canvas == MASK)


def test_the_numbers_of_masked_positions_are_those_of_the_whole_canvas():
    made = some_noise()
    assert torch.equal(made.at_hidden(11), made(11)[made.masked])


def test_a_large_vocabulary_leaves_nothing_large_behind():
    noise._kept_indices.cache_clear()
    made = some_noise(rows=1)
    for length in (5, 6, 7):
        made._stream.log_uniform(length * 300_000, noise.TOKEN)
    assert noise._kept_indices.cache_info().currsize == 0


def test_noise_is_made_for_masked_positions_alone(monkeypatch):
    drawn = []
    made = noise.Stream._log_uniform
    monkeypatch.setattr(
        noise.Stream, "_log_uniform", lambda self, x, keys: drawn.append(x.numel()) or made(self, x, keys)
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
