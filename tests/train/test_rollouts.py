"""Rollouts under training: what is hidden, from whom, and what the order learns."""

import copy
from dataclasses import replace

import pytest
import torch

import dprm
from dprm.data.draws import Draws
from dprm.decode.loop import advance, begin
from dprm.order import Gate
from dprm.order.noise import mix, mix_rows
from dprm.train.learner import learner
from dprm.train.rollouts import RolloutPlan, Rollouts, dealt_at_random, hidden_after
from tests.train.wishes import MASK, Wishes, beginner

PLAN = RolloutPlan(prompts=6, generations=4, reuse=4, replicates=2, bounds=2, seed=3)
STEPS = torch.tensor([[0, 3, 1, 2, 4], [0, 0, 2, 2, 1]])


def rollouts(plan=PLAN, order=None, shuffled=False, model=None, host=None, stock=20):
    host = host or Wishes()
    problems = host.problems("train", stock)
    return Rollouts(model or beginner(), host, problems, order or dprm.Order(), plan, shuffled=shuffled)


def test_a_level_hides_what_was_revealed_after_it():
    hidden = hidden_after(STEPS, torch.tensor([0.5, 0.5]))
    assert hidden.tolist() == [[False, True, False, False, True], [False, False, True, True, False]]


def test_level_zero_hides_the_whole_answer_and_the_last_level_its_last_step():
    assert torch.equal(hidden_after(STEPS, torch.zeros(2)), STEPS > 0)
    last = hidden_after(STEPS, torch.full((2,), 1 - 2.0**-24))
    assert torch.equal(last, STEPS.amax(1, keepdim=True) == STEPS)


def test_a_random_deal_keeps_the_given_positions_and_the_reveals_of_every_step():
    dealt = dealt_at_random(STEPS.repeat(200, 1), Draws(1))
    assert torch.equal(dealt == 0, STEPS.repeat(200, 1) == 0)
    assert torch.equal(dealt.sort(1).values, STEPS.repeat(200, 1).sort(1).values)
    first = torch.bincount((dealt[::2] == 1).long().argmax(1), minlength=5)[1:]
    assert int(first.min()) > 25


@pytest.mark.parametrize("learns", [False, True])
def test_progressive_canvases_are_states_that_the_rollout_passed_through(learns):
    order = learner(Wishes(), Gate(0, 0, 1)) if learns else dprm.Order()
    law = rollouts(order=order)
    for step in range(2 * PLAN.reuse):
        refresh, turn = divmod(step, PLAN.reuse)
        twin = copy.deepcopy(order)
        canvases = law.canvases(step)
        if turn == 0:  # The same decoding once more, with the evidence of before, writes down its states.
            asked, passed = law.asked(refresh), []
            seeds = mix_rows(asked.key, mix(mix(PLAN.seed, refresh)))
            state = begin(asked.canvas, law.host.decoding, seeds)
            write = lambda step, passed=passed: passed.append(step.state.tokens.clone())  # noqa: E731
            advance(law.present, state, twin, law.host.decoding, on_step=write)
            states = torch.stack(passed)
        noisy = canvases.noisy
        assert torch.equal(noisy, torch.where(canvases.masked, MASK, canvases.clean))
        assert bool((noisy == states.repeat(1, PLAN.replicates, 1)).all(2).any(0).all())


def test_random_canvases_leave_the_path_but_hide_as_many_positions():
    along, off = rollouts(host=Wishes(answers=20)), rollouts(host=Wishes(answers=20), shuffled=True)
    for step in range(PLAN.reuse):
        one, other = along.canvases(step), off.canvases(step)
        assert torch.equal(one.clean, other.clean)
        assert torch.equal(one.masked.sum(1), other.masked.sum(1))
        assert not torch.equal(one.masked, other.masked)


def test_over_its_reuse_every_rollout_is_seen_on_every_level():
    law = rollouts(RolloutPlan(prompts=3, generations=2, reuse=2, replicates=2, bounds=1))
    hidden = torch.stack([law.canvases(step).masked.sum(1).view(2, 6) for step in range(2)]).view(4, 6)
    assert torch.equal(hidden.sort(0).values, torch.tensor([1, 2, 3, 4]).unsqueeze(1).expand(4, 6))


def test_rollouts_of_one_prompt_share_their_level():
    masked = rollouts().canvases(0).masked.sum(1).view(-1, PLAN.generations)
    assert torch.equal(masked.amin(1), masked.amax(1))


def test_a_model_has_a_ratio_to_its_reference_as_soon_as_it_has_moved():
    law = rollouts()
    assert not law.canvases(0).log_rnd.any()
    law.present.model.load_state_dict(beginner(seed=9).state_dict())
    assert bool(law.canvases(PLAN.reuse).log_rnd.all())
    assert law.facts["log_rnd"] > 0.0


def test_a_reference_that_follows_the_model_leaves_no_ratio():
    law = rollouts(RolloutPlan(prompts=2, generations=2, sync=2))
    law.present.model.load_state_dict(beginner(seed=9).state_dict())
    ratios = []
    for refresh in range(4):
        law.canvases(refresh * law.plan.reuse)
        ratios.append(law.facts["log_rnd"])
    assert min(ratios[:2]) > 0
    assert ratios[2:] == [0.0, 0.0]


def test_objectives_are_given_the_logits_of_the_reference():
    law = rollouts()
    law.present.model.load_state_dict(beginner(seed=9).state_dict())
    canvases = law.canvases(0)
    torch.testing.assert_close(canvases.reference(canvases.noisy), beginner()(canvases.noisy))


def test_all_arms_answer_the_same_prompts():
    one, other = rollouts(), rollouts(order=learner(Wishes(), Gate(0, 0, 1)), shuffled=True)
    other.canvases(0)
    asked = one.asked(7)
    assert torch.equal(asked.key, other.asked(7).key)
    assert not torch.equal(asked.key, one.asked(8).key)
    assert len(asked.groups.unique()) == PLAN.prompts
    assert torch.equal(asked.groups.view(-1, PLAN.generations).amin(1), asked.groups[:: PLAN.generations])
    assert len(asked.key.unique()) == PLAN.prompts * PLAN.generations
    blank = one.canvases(0).clean[: len(asked), 0]
    assert torch.equal(blank, one.asked(0).canvas[:, 0])


def test_the_hosts_verdict_is_the_reward():
    law = rollouts()
    canvases = law.canvases(0)
    answers = canvases.clean[: PLAN.prompts * PLAN.generations]
    verdict = law.host.judge(law.asked(0), answers).double().view(PLAN.prompts, PLAN.generations)
    torch.testing.assert_close(canvases.reward, verdict)
    assert law.facts["reward"] == pytest.approx(verdict.mean().item())
    assert len(verdict.unique()) > 1


def test_the_order_observes_its_own_rollouts_prompt_by_prompt():
    order = learner(Wishes(), Gate(1, 2, 4))
    law = rollouts(order=order)
    for step in range(3 * PLAN.reuse):
        law.canvases(step)
    assert order.step == 3
    assert order.baseline == "prompt"
    # One event for each of the four revealed positions of every rollout.
    assert int(order.stats.count.sum()) == 3 * PLAN.prompts * PLAN.generations * 4


def test_an_order_that_does_not_explore_observes_nothing():
    order = dprm.Order()
    rollouts(order=order).canvases(0)
    assert order.stats is None
    assert order.step == 0


def test_a_policy_that_is_only_used_is_not_counted_twice_by_a_resume():
    order = learner(Wishes(), Gate(0, 0, 1))
    rollouts(order=order).canvases(0)
    used = dprm.Order.from_policy(order.policy())
    law, again = rollouts(order=used), rollouts(order=dprm.Order.from_policy(order.policy()))
    law.canvases(0)
    again.restore(law.state())
    assert again.order.stats == used.stats == order.stats


def test_before_its_gate_opens_the_learning_arm_rolls_out_as_confidence_does():
    order = learner(Wishes(), Gate(1, 2, 64), rule="soft_bon")
    learning, plain = rollouts(order=order), rollouts()
    assert torch.equal(learning.canvases(0).clean, plain.canvases(0).clean)
    later = learning.canvases(PLAN.reuse), plain.canvases(PLAN.reuse)
    assert learning.facts["changed"] > 0
    assert not torch.equal(later[0].noisy, later[1].noisy)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"generations": 1}, "generations is 1"), ({"reuse": 0}, "reuse is 0"), ({"sync": -1}, "sync is -1")],
)
def test_impossible_plans_are_named(changes, named):
    with pytest.raises(ValueError, match=named):
        replace(PLAN, **changes)


def test_too_few_problems_and_answers_that_are_all_alike_are_named():
    with pytest.raises(ValueError, match="prompts is 6: expected at most 5"):
        rollouts(stock=5)
    with pytest.raises(ValueError, match=r"temperature is 0\.0"):
        rollouts(host=Wishes().with_decoding(temperature=0.0))
