"""The fixed features: their number, what they depend on, and what they leave out."""

import pytest
import torch

import dprm
from dprm.order.basis import basis, names
from dprm.order.head import Head, HeadShape, Sight
from dprm.order.pace import paced
from tests.draws import candidates, logits


def sight(seed=0, rows=6, length=20, aux=3):
    reading, flags = dprm.read(logits(seed, rows, length, 6)), candidates(seed, rows, length)
    state = torch.randint(0, aux, (rows, length), generator=torch.Generator().manual_seed(seed))
    return Sight.of(reading, flags, 2, 0.4, state)


def features(seen, aux=3, reach=2):
    return basis(seen.numbers(), seen.aux, seen.candidates, aux, reach)


@pytest.mark.parametrize("aux", [1, 3, 24])
@pytest.mark.parametrize("reach", [0, 2, 4])
def test_there_are_as_many_as_announced(aux, reach):
    phi = features(sight(aux=aux), aux, reach)
    assert phi.shape == (6, 20, len(names(aux, reach)))
    assert phi.dtype == torch.float32
    assert torch.isfinite(phi).all()


def test_a_far_position_matters_through_the_canvas_means_only():
    seen, nearby, everywhere = sight(), sight(), sight()
    place = int(seen.candidates[0].nonzero()[-1])
    nearby.margin[0, place] += 0.5
    changed = (features(seen) != features(nearby)).any(2)
    wanted = torch.zeros_like(changed)
    wanted[0, max(0, place - 2) : place + 3] = True
    assert torch.equal(changed, wanted)
    everywhere.entropy[0, place] += 0.5
    changed = (features(seen) != features(everywhere)).any(2)
    assert changed[0].all()
    assert not changed[1:].any()


def test_tokens_and_padding_are_not_seen():
    seen, other = sight(), sight()
    other.tokens = torch.zeros_like(other.tokens)
    assert torch.equal(features(seen), features(other))
    assert not features(seen)[:, 0, 0].any()  # Left of the first position there is nothing.


def test_a_head_is_linear_in_them():
    head = Head(HeadShape(aux=3, reach=2))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        head.linear.weight.normal_(generator=generator)
    seen = sight()
    torch.testing.assert_close(head(seen), features(seen) @ head.linear.weight.squeeze(0))


def test_every_feature_has_a_name_of_its_own():
    named = names(3, 2)
    assert len(named) == len(set(named))
    seen = sight()
    phi, numbers = features(seen), seen.numbers()
    assert torch.equal(phi[..., named.index("margin")], numbers[..., 2])
    assert torch.equal(phi[:, 1:, named.index("entropy -1")], numbers[:, :-1, 3])
    assert torch.equal(phi[..., named.index("state 2")], (seen.aux == 2).float())
    assert torch.equal(phi[..., named.index("state 1 × log ratio")], (seen.aux == 1) * numbers[..., 4])
    assert torch.equal(phi[..., named.index("margin × progress")], numbers[..., 2] * numbers[..., 7])
    assert torch.equal(phi[..., named.index("confidence ≥ 0.9")], (numbers[..., 0] >= 0.9).float())
    turns = paced(numbers[..., 0], seen.candidates, seen.budget)
    assert torch.equal(phi[..., named.index("turn below 0.9")], turns[..., 0].float())
    assert torch.equal(phi[..., named.index("first below 0.99")], turns[..., 3].float())
    assert torch.equal(phi[..., named.index("first below 0.99 × progress")], turns[..., 3] * numbers[..., 7])


def test_the_strongest_weights_are_named():
    head = Head(HeadShape(aux=3, reach=2))
    assert head.strongest(5) == []
    with torch.no_grad():
        head.linear.weight[0, names(3, 2).index("entropy +1")] = -0.5
        head.linear.weight[0, names(3, 2).index("margin")] = 0.25
    assert head.strongest(5) == [("entropy +1", -0.5), ("margin", 0.25)]
