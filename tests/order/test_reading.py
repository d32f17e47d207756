"""Reading logits."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dprm
from tests.draws import logits, seeds


@given(seed=seeds, vocabulary=st.integers(2, 40), dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
def test_reading_agrees_with_the_definitions_in_float64(seed, vocabulary, dtype):
    x = (logits(seed, 3, 7, vocabulary) + torch.randn(3, 7, vocabulary)).to(dtype)
    reading = dprm.read(x)
    p = torch.softmax(x.double(), -1)
    top = p.topk(2, -1).values
    assert all(part.dtype == torch.float32 for part in (reading.confidence, reading.margin, reading.entropy))
    assert torch.equal(reading.tokens, x.float().argmax(-1))
    torch.testing.assert_close(reading.confidence.double(), top[..., 0], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(reading.margin.double(), top[..., 0] - top[..., 1], atol=1e-6, rtol=1e-5)
    entropy = -(p * p.clamp(min=1e-300).log()).sum(-1)
    torch.testing.assert_close(reading.entropy.double(), entropy, atol=2e-6, rtol=1e-4)


def test_confidence_is_that_of_the_given_token():
    x = torch.randn(2, 5, 6)
    tokens = torch.randint(0, 6, (2, 5))
    expected = torch.softmax(x, -1).gather(-1, tokens[..., None])[..., 0]
    reading = dprm.read(x, tokens)
    torch.testing.assert_close(reading.confidence, expected)
    assert torch.equal(reading.tokens, tokens)


def test_a_tie_goes_to_the_first_token():
    assert dprm.read(torch.zeros(1, 1, 9)).tokens.item() == 0


@pytest.mark.parametrize("forbidden", [0, 3, 8])
def test_a_forbidden_token_is_never_read(forbidden):
    x = torch.randn(2, 5, 9)
    x[..., forbidden] = 50.0
    reading = dprm.read(x, forbid=forbidden)
    kept = torch.cat([x[..., :forbidden], x[..., forbidden + 1 :]], -1)
    torch.testing.assert_close(reading.confidence, torch.softmax(kept, -1).amax(-1))
    assert not (reading.tokens == forbidden).any()
    assert dprm.read(x, torch.full((2, 5), forbidden), forbid=forbidden).confidence.max() == 0


def test_tiny_entropies_keep_their_order():
    x = torch.zeros(1, 3, 2)
    x[0, :, 0] = torch.tensor([20.0, 21.0, 22.0])
    entropy = dprm.read(x).entropy[0]
    assert entropy[0] > entropy[1] > entropy[2] > 0


def test_reading_does_not_write_into_the_logits():
    x = torch.randn(2, 3, 4)
    before = x.clone()
    dprm.read(x, forbid=1)
    assert torch.equal(x, before)


@given(seed=seeds)
def test_a_row_reads_the_same_alone_and_in_a_batch(seed):
    x = logits(seed, 16, 9, 33) + torch.randn(16, 9, 33, generator=torch.Generator().manual_seed(seed))
    whole, alone = dprm.read(x), dprm.read(x[5:6].clone())
    for name in ("tokens", "confidence", "margin", "entropy"):
        assert torch.equal(getattr(whole[[5]], name), getattr(alone, name))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_logits_that_are_no_numbers_are_named_by_place_and_value(bad, dtype):
    x = torch.zeros(3, 4, 5, dtype=dtype)
    x[2, 1, 3] = bad
    with pytest.raises(ValueError, match=rf"logits\[row 2, position 1, token 3\] is {bad}"):
        dprm.read(x)


def test_malformed_logits_and_tokens_are_refused():
    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"logits is torch.float32 \(2, 3\)"):
        dprm.read(x[..., 0])
    with pytest.raises(ValueError, match=r"logits is torch\.int64"):
        dprm.read(x.long())
    with pytest.raises(ValueError, match=r"tokens has shape \(2, 2\)"):
        dprm.read(x, torch.zeros(2, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"tokens\[row 1, position 2\] is 4: outside the vocabulary of 4"):
        dprm.read(x, torch.tensor([[0, 0, 0], [0, 0, 4]]))
    with pytest.raises(TypeError, match="tokens has type"):
        dprm.read(x, torch.zeros(2, 3))
    for token, message in [
        (-1, "forbid is -1: expected at least 0"),
        (99, "forbid is 99: outside the vocabulary of 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            dprm.read(x, forbid=token)


def test_reading_while_training_keeps_no_graph_and_does_not_disturb_the_gradient():
    x = torch.randn(2, 4, 5, requires_grad=True)
    y = x * 2
    reading = dprm.read(y)
    assert not reading.confidence.requires_grad
    every = torch.ones(2, 4, dtype=torch.bool)
    for rule in ("top_m", "shortlist_top_m", "soft_bon"):
        dprm.Order(rule=rule, explore=True).select(reading, every, 2, 0.5)
    y.square().sum().backward()
    torch.testing.assert_close(x.grad, 8 * x.detach())


def test_the_hosts_order_to_the_last_bit_is_that_of_the_confidence_it_gives():
    """`torch.softmax` sums otherwise: positions that it puts otherwise are level to a millionth."""
    x = torch.randn(400, 64, 50, generator=torch.Generator().manual_seed(0)) * 2
    reading, p = dprm.read(x), torch.softmax(x, -1).amax(-1)
    torch.testing.assert_close(reading.confidence, p, rtol=1e-6, atol=0)
    every = torch.ones(400, 64, dtype=torch.bool)
    own = dprm.Order().select(reading, every, 8, 0.5).mask
    theirs = torch.zeros_like(own).scatter(1, p.sort(dim=1, descending=True, stable=True).indices[:, :8], True)
    for row in (own != theirs).any(1).nonzero().flatten():
        apart = p[row][own[row] != theirs[row]]
        assert float(apart.max() - apart.min()) < 1e-6
    given = dprm.Reading(reading.tokens, p, reading.margin, reading.entropy)
    assert torch.equal(dprm.Order().select(given, every, 8, 0.5).mask, theirs)
