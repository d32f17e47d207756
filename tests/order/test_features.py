"""The fixed features: their number, what they depend on, what they leave out, and whose turn it is."""

import math

import pytest
import torch

import dprm
from dprm.order.features import LEVELS, basis, echoes, names, paced
from dprm.order.head import Head, Sight
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
    head = Head(torch.randn(len(names(3, 2)), generator=torch.Generator().manual_seed(1)), aux=3, reach=2)
    seen = sight()
    torch.testing.assert_close(head(seen), features(seen) @ head.weight)


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
    head = Head.empty(aux=3, reach=2)
    assert head.strongest(5) == []
    head.weight[names(3, 2).index("entropy +1")] = -0.5
    head.weight[names(3, 2).index("margin")] = 0.25
    assert head.strongest(5) == [("entropy +1", -0.5), ("margin", 0.25)]


def test_at_one_position_a_step_turns_and_the_hosts_choice_echo_the_host():
    named = names(2, 1)
    alone = [name for name, echo in zip(named, echoes(2, 1, width=1), strict=True) if echo]
    together = [name for name, echo in zip(named, echoes(2, 1, width=3), strict=True) if echo]
    assert together == ["host's choice"]
    assert {name.split(" below ")[0] for name in alone} == {"host's choice", "turn", "first"}
    assert "first below 0.9 × progress" in alone


# ---- whose turn it is, against the definition written out row by row -------------------------------------------------


def by_definition(confidence, candidates, budget):
    """Lists of positions, one for every row and feature."""
    rows = []
    for psi, open_, m in zip(confidence.tolist(), candidates.tolist(), budget.tolist(), strict=True):
        places = sorted((i for i in range(len(psi)) if open_[i]), key=lambda i: -psi[i])
        steps = math.ceil(len(places) / m)
        row = []
        for level in LEVELS:
            unsure = [i for i in places if psi[i] < torch.tensor(level).item()]
            for parts in (steps, 2 * steps):
                row.append(set(unsure[: math.ceil(len(unsure) / parts)]) if places else set())
        rows.append(row)
    return rows


@pytest.mark.parametrize("m", [1, 3, 8, 40])
def test_it_is_the_definition(m):
    generator = torch.Generator().manual_seed(m)
    # Many near certainty, none alike.
    confidence = 1.0 - 10.0 ** (-6.0 * torch.rand(12, 30, generator=generator))
    candidates = torch.rand(12, 30, generator=generator) < 0.7
    candidates[0] = False
    candidates[1, 1:] = False
    budget = torch.full((12,), m)
    turns = paced(confidence, candidates, budget)
    assert turns.shape == (12, 30, 2 * len(LEVELS))
    wanted = by_definition(confidence, candidates, budget)
    for row in range(12):
        for k in range(2 * len(LEVELS)):
            assert set(turns[row, :, k].nonzero().flatten().tolist()) == wanted[row][k], (row, k)


def test_at_one_position_a_step_it_is_the_surest_of_the_unsure():
    confidence = torch.tensor([[0.99995, 0.97, 0.6, 0.3]])
    turns = paced(confidence, torch.ones(1, 4, dtype=torch.bool), torch.tensor([1]))
    for k, level in enumerate(LEVELS):
        first = next(i for i in range(4) if confidence[0, i] < level)
        assert turns[0, :, 2 * k].nonzero().flatten().tolist() == [first]
        assert torch.equal(turns[..., 2 * k], turns[..., 2 * k + 1])


def test_equal_confidences_share_a_turn():
    confidence = torch.tensor([[0.5, 0.5, 0.2]])
    turns = paced(confidence, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1]))
    assert turns[0, :, 0].tolist() == [True, True, False]


def test_what_is_visible_and_what_is_sure_has_no_turn():
    confidence = torch.tensor([[1.0, 1.0, 0.5]])
    candidates = torch.tensor([[True, True, False]])
    assert not paced(confidence, candidates, torch.tensor([2])).any()


def test_a_row_that_reveals_nothing_now_is_as_one_that_reveals_one():
    confidence, candidates = torch.tensor([[0.5, 0.3, 0.2]]), torch.ones(1, 3, dtype=torch.bool)
    nothing, one = (paced(confidence, candidates, torch.tensor([budget])) for budget in (0, 1))
    assert torch.equal(nothing, one)
