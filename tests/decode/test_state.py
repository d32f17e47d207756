"""Forking a canvas and going on from it; hosts that take tokens back."""

import pytest
import torch

import dprm
from dprm.decode import Compete, Cumulative, Even, Remask
from tests.draws import taught
from tests.mock_denoiser import MASK, MockDenoiser, masked_canvas


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_stopping_and_going_on_is_going_through(temperature):
    order, canvas = taught(dprm.Order(rule="soft_bon"), 2), masked_canvas(3, 12)
    how = {"mask_id": MASK, "budget": 2, "temperature": temperature, "seed": 5}
    through = dprm.decode(MockDenoiser(1), canvas, order, **how)
    prefix = dprm.decode(MockDenoiser(1), canvas, order, until=2, **how)
    rest = dprm.decode(MockDenoiser(1), prefix.state, order, **{**how, "seed": 99})
    assert torch.equal(rest.tokens, through.tokens)
    assert torch.equal(rest.step_map, through.step_map)
    assert (prefix.nfe, rest.nfe) == (2, through.nfe - 2)


def test_a_fork_pays_the_common_prefix_once_and_leaves_its_parent_alone():
    denoiser, order, canvas = MockDenoiser(1), dprm.Order(), masked_canvas(2, 12)
    prefix = dprm.decode(denoiser, canvas, order, mask_id=MASK, until=4)
    before = prefix.state.tokens.clone()
    forked = prefix.state.fork(5)
    assert torch.equal(forked.tokens, before.repeat_interleave(5, 0))
    rest = dprm.decode(denoiser, forked, order, mask_id=MASK)
    assert denoiser.calls == prefix.nfe + rest.nfe == 10
    assert torch.equal(prefix.state.tokens, before)
    assert torch.equal(forked.tokens, before.repeat_interleave(5, 0))
    assert torch.equal(rest.tokens[::5], rest.tokens[4::5])


def test_forcing_one_position_changes_that_branch_only():
    denoiser, order = MockDenoiser(1), dprm.Order()
    prefix = dprm.decode(denoiser, masked_canvas(1, 10), order, mask_id=MASK, until=3)
    forked = prefix.state.fork(2)
    free = (prefix.state.tokens[0] == MASK).nonzero()[-1, 0]
    forced = forked.reveal(torch.stack([free, free]), torch.tensor([0, 1]))
    rest = dprm.decode(denoiser, forced, order, mask_id=MASK)
    assert rest.tokens[:, free].tolist() == [0, 1]
    assert (forked.tokens[:, free] == MASK).all()
    assert not (rest.tokens == MASK).any()


def test_forks_share_their_random_numbers_unless_given_their_own():
    denoiser, order = MockDenoiser(1, sharpness=0.3), dprm.Order()
    how = {"mask_id": MASK, "temperature": 1.5}
    prefix = dprm.decode(denoiser, masked_canvas(1, 16), order, until=3, seed=4, **how)
    shared = dprm.decode(denoiser, prefix.state.fork(8), order, **how).tokens
    own = dprm.decode(denoiser, prefix.state.fork(8, seed=11), order, **how).tokens
    assert (shared == shared[0]).all()
    assert len(own.unique(dim=0)) > 4
    with pytest.raises(ValueError, match="copies is 0"):
        prefix.state.fork(0)


def test_competing_positions_grow_to_all_and_given_ones_stay():
    seen = []
    canvas = masked_canvas(2, 12)
    how = {"on_step": lambda step: seen.append(int(step.choice.mask[0].sum()))}
    result = dprm.decode(
        MockDenoiser(4), canvas, dprm.Order(), mask_id=MASK, budget=Cumulative(5), revoke=Compete(), **how
    )
    assert seen == [2, 4, 6, 8, 10]
    assert result.nfe == 5
    assert not (result.tokens == MASK).any()
    assert torch.equal(result.tokens[:, :2], canvas[:, :2])


def test_a_visible_position_competes_with_the_probability_of_its_present_token():
    def denoiser(tokens):  # Once position 1 is visible, the model no longer believes in what position 0 holds.
        logits = torch.zeros(*tokens.shape, 4)
        second = (tokens[:, 1] != 3).float()
        logits[:, 0, 0] = 3.0 - 6.0 * second
        logits[:, 1:, 1] = 2.0
        return logits

    result = dprm.decode(
        denoiser, torch.full((1, 4), 3), dprm.Order(), mask_id=3, budget=Cumulative(4), revoke=Compete()
    )
    assert result.tokens[0, 0] != 0
    assert result.step_map[0, 0] > 1


def test_remasking_ends_with_everything_revealed_and_credits_every_selection():
    canvas = masked_canvas(8, 20)
    result = dprm.decode(MockDenoiser(2), canvas, dprm.Order(), mask_id=MASK, budget=Even(12), revoke=Remask(0.5))
    assert result.nfe == 12
    assert not (result.tokens == MASK).any()
    rows, _ = result.trace.events()
    assert (rows.bincount() > 18).any()
    with pytest.raises(ValueError, match="revoke needs a count with a fixed number of steps"):
        dprm.decode(MockDenoiser(2), canvas, dprm.Order(), mask_id=MASK, budget=1, revoke=Remask(0.5))


def test_a_remasking_host_can_be_stopped_and_continued_too():
    canvas = masked_canvas(4, 14)
    how = {"mask_id": MASK, "budget": Even(8), "revoke": Remask(0.5), "seed": 3}
    through = dprm.decode(MockDenoiser(2), canvas, dprm.Order(), **how)
    prefix = dprm.decode(MockDenoiser(2), canvas, dprm.Order(), until=3, **how)
    rest = dprm.decode(MockDenoiser(2), prefix.state, dprm.Order(), **how)
    assert (prefix.nfe, rest.nfe) == (3, 5)
    assert torch.equal(rest.tokens, through.tokens)
