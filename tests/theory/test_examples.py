"""The constructed hosts show what they were built to show."""

import numpy as np
import pytest

from dprm.theory import aliased_pair, keyed, myopic, random_chain
from dprm.theory.examples import random_policy, teacher_forced
from dprm.theory.gating import gated_host


@pytest.mark.parametrize(("beta", "soft"), [(1.0, 0.871), (2.0, 0.948), (4.0, 0.993), (8.0, 0.9999)])
def test_myopic_host_pays_nothing_to_confidence_and_everything_to_the_hard_rule(beta, soft):
    chain = myopic(beta)
    assert chain.expected_reward(chain.confidence) == 0.0
    assert chain.expected_reward(chain.hard) == 1.0
    assert chain.expected_reward(chain.q0) == pytest.approx(0.713, abs=5e-4)
    assert chain.expected_reward(chain.pi_star) == pytest.approx(soft, abs=5e-4)


def test_below_the_threshold_the_hard_rule_stays_with_confidence():
    chain = myopic(0.999 * float(np.log(0.70 / 0.58)))
    assert chain.expected_reward(chain.hard) == 0.0


def test_keyed_host_pays_one_beginning_only():
    chain = keyed(2.0)
    assert chain.expected_reward(chain.confidence) == 0.0
    uniform = chain.expected_reward(lambda state: np.full(state.count(chain.vocab), 1 / state.count(chain.vocab)))
    assert uniform == pytest.approx(1 / 6)
    confidence = np.sort(chain.conditionals[chain.start].max(-1))
    assert confidence[2] == pytest.approx(0.58)


def test_aliased_pair_shares_its_denoiser_and_splits_its_targets():
    first, second = aliased_pair()
    np.testing.assert_array_equal(first.conditionals, second.conditionals)
    assert first.expected_reward(first.confidence) + second.expected_reward(second.confidence) == 1.0


def test_gated_denoiser_keeps_its_mode_at_the_gate():
    chain = gated_host(0.2, 3, np.random.default_rng(0))
    hidden = chain.conditionals[chain.start]
    np.testing.assert_allclose(hidden.max(-1), 0.8)
    np.testing.assert_allclose(hidden.min(-1), 0.1)


def test_teacher_forcing_ends_at_the_clean_sequence_in_every_order():
    chain = random_chain(0, length=4, tokens="sampled")
    forced = teacher_forced(chain, (2, 0, 1, 1))
    assert forced.terminal_law(random_policy(chain, np.random.default_rng(0)))[2, 0, 1, 1] == pytest.approx(1.0)


def test_unknown_reward_and_noise_are_refused():
    with pytest.raises(ValueError, match="'dense'"):
        random_chain(0, reward="dense")
    with pytest.raises(ValueError, match=r"got 2\.0"):
        random_chain(0, noise=2.0)
