"""WDCE: closed forms on two states, and the laws of its weights."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dprm.train.objective import likelihood_bound, log_ratio
from dprm.train.rollouts import RolloutCanvases
from dprm.train.wdce import Wdce

# A model with one free logit θ over two terminal states: p(1) = σ(θ). The reference has θ₀.
ALPHA, THETA_0, REWARD = 0.5, -0.4, torch.tensor([0.1, 1.0], dtype=torch.float64)
TILT = (1.0 - 0.1) / ALPHA
advantages = Wdce().advantages


def sigma(theta):
    return 1 / (1 + math.exp(-theta))


def group_from_present_law(ones, size):
    """A group whose states occur exactly as often as under p_cur(1) = ones/size: states, rewards and log_rnd, [1,G]."""
    state = (torch.arange(size) < ones).long()
    reference = torch.tensor([1 - sigma(THETA_0), sigma(THETA_0)], dtype=torch.float64)
    present = torch.tensor([1 - ones / size, ones / size], dtype=torch.float64)
    return state[None], REWARD[state][None], (reference / present).log()[state][None]


def loss(objective, logits, clean, reward, log_rnd):
    """Of canvases that hide everything."""
    masked = torch.ones_like(clean, dtype=torch.bool)
    return objective(logits, RolloutCanvases(clean, clean, masked, reward, log_rnd, reference=None))


def slope(theta, state, reward, log_rnd, negative=1.0):
    """dLoss/dθ, through the same code that training uses."""
    theta = torch.tensor(float(theta), dtype=torch.float64, requires_grad=True)
    logits = torch.stack([torch.zeros_like(theta), theta]).expand(state.shape[1], 1, 2)
    objective = Wdce(ALPHA, negative)
    return torch.autograd.grad(loss(objective, logits, state.T, reward, log_rnd), theta)[0].item()


@pytest.mark.parametrize(("ones", "size"), [(1, 4), (2, 4), (7, 16), (15, 16)])
def test_positive_weights_are_the_tilted_law_whatever_the_rollouts_came_from(ones, size):
    state, reward, log_rnd = group_from_present_law(ones, size)
    wanted, unwanted = Wdce(ALPHA).path_weights(reward, log_rnd)
    assert (wanted * state).sum().item() == pytest.approx(sigma(THETA_0 + TILT))
    assert (unwanted * state).sum().item() == pytest.approx(sigma(THETA_0 - TILT))


@pytest.mark.parametrize(("ones", "size"), [(1, 4), (7, 16), (15, 16)])
@pytest.mark.parametrize("theta", [-2.0, 0.0, 1.0, THETA_0 + TILT])
def test_without_negatives_the_fixed_point_is_the_tilted_law(ones, size, theta):
    state, reward, log_rnd = group_from_present_law(ones, size)
    expected = sigma(theta) - sigma(THETA_0 + TILT)
    assert slope(theta, state, reward, log_rnd, negative=0.0) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("theta", [-2.0, 0.0, 3.0])
def test_with_negatives_the_slope_is_constant_and_points_to_the_better_state(theta):
    state, reward, log_rnd = group_from_present_law(7, 16)
    expected = sigma(THETA_0 - TILT) - sigma(THETA_0 + TILT)
    assert expected < 0
    assert slope(theta, state, reward, log_rnd) == pytest.approx(expected, abs=1e-6)


def test_partial_negatives_move_the_fixed_point_beyond_the_tilted_law():
    state, reward, log_rnd = group_from_present_law(7, 16)
    share = 0.1
    fixed = (sigma(THETA_0 + TILT) - share * sigma(THETA_0 - TILT)) / (1 - share)
    assert sigma(THETA_0 + TILT) < fixed < 1
    theta = math.log(fixed / (1 - fixed))
    assert slope(theta, state, reward, log_rnd, negative=share) == pytest.approx(0.0, abs=1e-6)


def test_rollouts_of_the_reference_are_weighted_by_their_rewards_alone():
    reward = torch.tensor([[0.0, 0.1, 1.0, 1.0]])
    by_hand = [math.exp(value / 0.04) for value in (0.0, 0.1, 1.0, 1.0)]
    against = [1 / weight for weight in by_hand]
    expected = [w / sum(by_hand) - v / sum(against) for w, v in zip(by_hand, against)]
    # Rewards in float32 are only nearly 0.1, and are divided by 0.04.
    torch.testing.assert_close(
        advantages(reward, torch.zeros(1, 4))[0], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6
    )


groups = st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=2, max_size=8)
ratios = st.integers(0, 2**31)


def some_ratio(seed, shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 3


@given(groups, ratios, st.floats(-50, 50))
def test_a_constant_added_to_the_rewards_of_a_prompt_changes_nothing(rewards, seed, constant):
    reward = torch.tensor([rewards], dtype=torch.float64)
    log_rnd = some_ratio(seed, reward.shape)
    moved = advantages(reward + constant, log_rnd)
    torch.testing.assert_close(moved, advantages(reward, log_rnd), rtol=0, atol=1e-9)


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=12, max_size=12), ratios, st.permutations(range(4)))
def test_prompts_do_not_meet_and_the_order_inside_a_group_does_not_matter(rewards, seed, turned):
    reward = torch.tensor(rewards, dtype=torch.float64).view(3, 4)
    log_rnd = some_ratio(seed, reward.shape)
    whole = advantages(reward, log_rnd)
    torch.testing.assert_close(advantages(reward[:, turned], log_rnd[:, turned]), whole[:, turned])
    torch.testing.assert_close(advantages(reward.flip(0), log_rnd.flip(0)), whole.flip(0))
    alone = torch.cat([advantages(reward[row : row + 1], log_rnd[row : row + 1]) for row in range(3)])
    torch.testing.assert_close(alone, whole)


@given(st.sampled_from([0.0, 0.1, 1.0, -3.7]), st.integers(2, 9), ratios)
def test_a_group_of_equal_rewards_is_left_alone_exactly(value, size, seed):
    reward = torch.full((2, size), value)
    assert not advantages(reward, some_ratio(seed, reward.shape)).any()


@given(groups, ratios)
def test_advantages_are_finite_and_balanced(rewards, seed):
    reward = torch.tensor([rewards])
    found = advantages(reward, 1_000 * some_ratio(seed, reward.shape))
    assert bool(torch.isfinite(found).all())
    assert found.sum().item() == pytest.approx(0.0, abs=1e-12)


def test_the_loss_sums_a_group_and_averages_prompts_and_masks():
    logits = torch.randn(12, 1, 3, generator=torch.Generator().manual_seed(0))
    clean = torch.arange(12).view(12, 1) % 3
    reward = torch.tensor([[0.0, 1.0], [0.1, 0.0], [1.0, 1.0]])
    entropy = -logits.log_softmax(-1)[torch.arange(12), 0, clean[:, 0]].view(2, 3, 2)
    weight = advantages(reward, torch.zeros(3, 2))
    by_hand = sum(weight[p, g] * entropy[r, p, g] for r in range(2) for p in range(3) for g in range(2)) / 6
    torch.testing.assert_close(loss(Wdce(), logits, clean, reward, torch.zeros(3, 2)).double(), by_hand)


def test_the_bound_is_exact_for_independent_positions():
    # The same law at every position, so that every mask says the same.
    logits = torch.tensor([0.3, -1.0, 0.5]).expand(1, 4, 3)
    clean = torch.full((1, 4), 2)
    masked = torch.tensor([[True, False, True, False]])
    bound = likelihood_bound(logits, clean, masked, torch.tensor([4]))
    assert bound.item() == pytest.approx(4 * logits[0, 0].log_softmax(-1)[2].item(), rel=1e-6)
    assert log_ratio([bound, bound], [bound - 1, bound - 3]).item() == pytest.approx(2.0)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"reward has shape \(4,\)"):
        advantages(torch.ones(4), torch.ones(4))
    with pytest.raises(ValueError, match=r"log_rnd has shape \(4,\)"):
        advantages(torch.ones(1, 4), torch.ones(4))
    with pytest.raises(ValueError, match=r"alpha is 0\.0"):
        Wdce(alpha=0.0)
    with pytest.raises(ValueError, match=r"negative is -1"):
        Wdce(negative=-1.0)
