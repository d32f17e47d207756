"""The shared transformer: what it must not depend on, and what it may."""

import pytest
import torch

from dprm.train.transformer import Config, Transformer

SIDES = ((0, 0, 1, 1, 2, 2), (0, 1, 0, 1, 0, 1))


def small(**changes):
    options = {"vocabulary": 7, "width": 32, "depth": 2, "heads": 2, **changes}
    return Transformer(Config(**options), seed=3).eval()


def tokens(rows=4, length=6, seed=0):
    return torch.randint(0, 7, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("changes", [{}, {"sides": SIDES}, {"sides": SIDES, "attract": True, "rotary": False}])
def test_a_row_has_the_same_logits_in_any_batch(changes):
    model, batch = small(**changes), tokens()
    together = model(batch)
    for row in range(len(batch)):
        torch.testing.assert_close(model(batch[row : row + 1])[0], together[row])


def test_every_position_sees_every_other():
    model, batch = small(), tokens(1)
    changed = batch.clone()
    changed[0, 0] = (changed[0, 0] + 1) % 7
    assert ((model(batch) - model(changed)).abs().amax(-1) > 1e-7).all()


def test_without_positions_logits_move_with_the_tokens():
    model, batch = small(rotary=False), tokens()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(model(batch[:, order]), model(batch)[:, order])


def test_with_rotary_positions_they_do_not():
    model, batch = small(), tokens()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert not torch.allclose(model(batch[:, order]), model(batch)[:, order])


def test_exchanging_positions_of_equal_sides_exchanges_their_logits():
    model = small(sides=((0, 0, 1, 1, 2, 2),), attract=True, rotary=False)
    batch, order = tokens(), torch.tensor([1, 0, 2, 3, 4, 5])
    torch.testing.assert_close(model(batch[:, order]), model(batch)[:, order])


def test_attraction_is_a_bias_on_the_attention_logits():
    model = small(sides=SIDES, attract=True, rotary=False)
    attention = model.layers[0].attention
    h = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(1))
    q, k, v = attention.qkv(h).view(2, 6, 3, 2, 16).permute(2, 0, 3, 1, 4)
    q, k = attention.query_norm(q), attention.key_norm(k)
    agree = torch.tensor([[[float(a == b) for a in side] for b in side] for side in SIDES])
    bias = torch.einsum("hs,sij->hij", attention.pull.view(2, 2), agree)
    weights = torch.softmax(q @ k.transpose(-1, -2) / 4 + bias, dim=-1)
    expected = attention.out((weights @ v).transpose(1, 2).reshape(2, 6, 32))
    torch.testing.assert_close(attention(h, None, (model.membership, model.owner)), expected)


def test_a_prefix_changes_logits_but_gets_none():
    model, batch = small(sides=SIDES, attract=True), tokens()
    prefix = torch.randn(4, 3, 32, generator=torch.Generator().manual_seed(2))
    assert model(batch, prefix=prefix).shape == (4, 6, 7)
    assert not torch.allclose(model(batch, prefix=prefix), model(batch))


def test_tied_output_saves_one_matrix():
    assert small().parameter_count() - small(tied=True).parameter_count() == 7 * 32


def test_the_size_used_for_hosts_fits_sixteen_megabytes_in_half_precision():
    assert Transformer(Config(19)).parameter_count() * 2 < 16 * 2**20


def test_a_shape_survives_json():
    config = Config(7, sides=SIDES)
    assert Config(**config.to_dict()) == config


def test_the_seed_of_the_weights_leaves_the_global_state_alone():
    before = torch.get_rng_state()
    first, second = small(), small()
    assert torch.equal(torch.get_rng_state(), before)
    weights = dict(second.named_parameters())
    assert all(torch.equal(weight, weights[name]) for name, weight in first.named_parameters())


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"width": 30, "heads": 4}, "width 30"), ({"depth": 0}, "depth is 0"), ({"sides": ((0,), (0, 1))}, "lengths")],
)
def test_impossible_shapes_are_named(changes, named):
    with pytest.raises(ValueError, match=named):
        small(**changes)
