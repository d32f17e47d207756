"""Reading and drawing in pieces: the same numbers for any piece, nothing where it is not asked for, little memory."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from dprm.decode.reader import Gumbel, Logits
from dprm.decode.state import State
from dprm.order import noise, reading
from tests.draws import logits, seeds

COLUMNS = ("tokens", "confidence", "margin", "entropy", "peak")


@given(seed=seeds, share=st.sampled_from([0.0, 0.3, 1.0]), drawn=st.booleans(), forbid=st.sampled_from([None, 2, 8]))
def test_eligible_positions_read_as_if_all_were_read_and_the_others_are_0(seed, share, drawn, forbid):
    generator = torch.Generator().manual_seed(seed)
    x, eligible = logits(seed, 4, 7, 9), torch.rand(4, 7, generator=generator) < share
    tokens = torch.randint(0, 9, (4, 7), generator=generator) if drawn else None
    whole, part = dprm.read(x, tokens, forbid=forbid), dprm.read(x, tokens, eligible, forbid=forbid)
    for name in COLUMNS:
        assert torch.equal(getattr(part, name)[eligible], getattr(whole, name)[eligible])
        assert not getattr(part, name)[~eligible].any()


@pytest.mark.parametrize("at_once", [1, 40, 100])
def test_the_size_of_a_piece_changes_no_bit(at_once, monkeypatch):
    x = logits(3, 5, 6, 33, torch.bfloat16)
    x[0, 0, :20] = -torch.inf
    whole = dprm.read(x, forbid=4)
    monkeypatch.setattr(reading, "_OF_A_THREAD", at_once)
    pieces = dprm.read(x, forbid=4)
    assert all(torch.equal(getattr(whole, name), getattr(pieces, name)) for name in COLUMNS)


def test_logits_that_are_not_contiguous_are_read_without_a_copy_of_them():
    x = logits(4, 6, 5, 9).transpose(0, 1)
    whole = dprm.read(x.contiguous())
    assert all(torch.equal(getattr(whole, name), getattr(dprm.read(x), name)) for name in COLUMNS)


def test_a_logit_that_is_no_number_matters_only_where_it_is_eligible():
    x, eligible = torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    x[1, 2, 0] = torch.nan
    eligible[1, 2] = False
    assert torch.isfinite(dprm.read(x, eligible=eligible).entropy).all()
    eligible[1, 2], eligible[0] = True, False
    with pytest.raises(ValueError, match=r"logits\[row 1, position 2, token 0\] is nan"):
        dprm.read(x, eligible=eligible)
    with pytest.raises(ValueError, match="no token is left"):
        dprm.read(torch.full((1, 1, 3), -torch.inf), forbid=1)


def test_malformed_eligible_positions_and_unknown_backends_are_refused():
    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"eligible has shape \(2, 2\)"):
        dprm.read(x, eligible=torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(TypeError, match="eligible has type"):
        dprm.read(x, eligible=torch.ones(2, 3))
    with pytest.raises(ValueError, match="backend is 'cuda'"):
        dprm.read(x, backend="cuda")


class Largest(torch.overrides.TorchFunctionMode):
    """The largest block of memory that any operation made."""

    bytes = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and all(result.data_ptr() != known for known in self.known):
            self.bytes = max(self.bytes, result.untyped_storage().nbytes())
        return result

    def __init__(self, *known):
        super().__init__()
        self.known = [tensor.data_ptr() for tensor in known]


def test_reading_and_drawing_take_little_memory_whatever_the_logits():
    x = torch.randn(2, 64, 40_000, dtype=torch.bfloat16)
    state = State.start(torch.zeros(2, 64, dtype=torch.int64), 0, 0)
    # All of it in float32 is 20 MB, and its noise as much.
    with Largest(x, *x) as read_in:
        dprm.read(x, eligible=torch.ones(2, 64, dtype=torch.bool), forbid=3)
    with Largest(x, *x) as drawn_in:
        Logits().draw(x, 0.7, Gumbel(state))
    assert read_in.bytes < 5e6
    assert drawn_in.bytes < 9e6


@given(seed=seeds, share=st.sampled_from([0.2, 1.0]))
def test_what_is_drawn_is_a_function_of_seed_and_position(seed, share):
    """The arg-max of logits and of the noise of the whole canvas, for any batch and any positions asked for."""
    generator = torch.Generator().manual_seed(seed)
    x, eligible = logits(seed, 5, 6, 11), torch.rand(5, 6, generator=generator) < share
    state = State.start(torch.zeros(5, 6, dtype=torch.int64), 0, torch.randint(0, 2**40, (5,), generator=generator))
    state.redrawn[:] = torch.randint(0, 3, (5, 6), generator=generator)
    reader, gumbel = Logits(forbid=(2,)), Gumbel(state)
    noisy = gumbel(11).add_(x, alpha=1 / 0.7)
    noisy[..., 2] = -torch.inf
    wanted = noisy.argmax(-1)
    assert torch.equal(reader.draw(x, 0.7, gumbel), wanted)
    assert torch.equal(reader.draw(x, 0.7, gumbel, eligible), wanted * eligible)
    rows = torch.tensor([3, 1])
    assert torch.equal(reader.draw(x[rows], 0.7, Gumbel(state[rows])), wanted[rows])


def test_noise_of_large_vocabularies_is_that_of_small_ones(monkeypatch):
    state = State.start(torch.zeros(2, 3, dtype=torch.int64), 0, 5)
    row, position = torch.tensor([0, 1, 1]), torch.tensor([1, 1, 2])
    small = Gumbel(state).at(row, position, 50)
    monkeypatch.setattr(noise, "_SMALL", 10)
    assert torch.equal(Gumbel(state).at(row, position, 50), small)
    assert torch.equal(Gumbel(state)(50)[row, position], small)
