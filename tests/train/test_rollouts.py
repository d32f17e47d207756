"""Rollouts under training: what is hidden, from whom, and what the order learns."""

import copy

import pytest
import torch

import dprm
from dprm.data.draws import Draws
from dprm.hosts.dmpo import canvas, problems
from dprm.hosts.dmpo.host import Countdown
from dprm.train.posttraining import order_of
from dprm.train.prompts import HostPrompts
from dprm.train.rollouts import Plan, Rollouts, dealt_at_random, hidden_after
from tests.train.wishes import MASK, Wishes, beginner

PLAN = Plan(prompts=6, generations=4, reuse=4, replicates=2, bounds=2, seed=3)
STEPS = torch.tensor([[0, 3, 1, 2, 4], [0, 0, 2, 2, 1]])


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def rollouts(plan=PLAN, order=None, shuffled=False, learns=False, model=None, prompts=None):
    model, prompts, order = model or beginner(), prompts or Wishes(), order or dprm.Order()
    return Rollouts(model, beginner(), prompts, order, plan, shuffled=shuffled, learns=learns)


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


@pytest.mark.parametrize("arm", ["confidence-progressive", "dprm-progressive"])
def test_progressive_canvases_are_states_that_the_rollout_passed_through(arm):
    order = order_of(arm, warm=0, switch=0, ready=1)
    law = rollouts(order=order, learns=arm == "dprm-progressive")
    for step in range(2 * PLAN.reuse):
        passed = []
        if step % PLAN.reuse == 0:  # The same decoding once more, with the evidence of before, writes down its states.
            twin = copy.deepcopy(order)
            _, blank = Wishes().draw(step // PLAN.reuse, PLAN.prompts)
        clean, noisy, masked = law.canvases(step)
        if step % PLAN.reuse == 0:
            dprm.decode(
                law.present,
                blank.repeat_interleave(PLAN.generations, 0),
                twin,
                mask_id=MASK,
                temperature=PLAN.temperature,
                seed=dprm.order.noise.mix(PLAN.seed, step // PLAN.reuse),
                on_step=lambda state, reading, choice, passed=passed: passed.append(state.tokens.clone()),
            )
            states = torch.stack(passed)
        assert torch.equal(noisy, torch.where(masked, MASK, clean))
        assert bool((noisy == states.repeat(1, PLAN.replicates, 1)).all(2).any(0).all())


def test_random_canvases_leave_the_path_but_hide_as_many_positions():
    asked = Wishes(answers=20)
    along, off = rollouts(prompts=asked), rollouts(prompts=asked, shuffled=True)
    for step in range(PLAN.reuse):
        one, other = along.canvases(step), off.canvases(step)
        assert torch.equal(one.clean, other.clean)
        assert torch.equal(one.masked.sum(1), other.masked.sum(1))
        assert not torch.equal(one.masked, other.masked)


def test_over_its_reuse_every_rollout_is_seen_on_every_level():
    law = rollouts(plan=Plan(prompts=3, generations=2, reuse=2, replicates=2, bounds=1))
    hidden = torch.stack([law.canvases(step).masked.sum(1).view(2, 6) for step in range(2)]).view(4, 6)
    assert torch.equal(hidden.sort(0).values, torch.tensor([1, 2, 3, 4]).unsqueeze(1).expand(4, 6))


def test_rollouts_of_one_prompt_share_their_level():
    masked = rollouts().canvases(0).masked.sum(1).view(-1, PLAN.generations)
    assert torch.equal(masked.amin(1), masked.amax(1))


def test_rollouts_of_the_reference_have_no_ratio_and_those_of_another_model_have_one():
    same, other = rollouts(), rollouts(model=beginner(seed=9))
    same.canvases(0)
    other.canvases(0)
    assert same.facts["log_rnd"] == 0.0
    assert other.facts["log_rnd"] > 0.0


def test_a_reference_that_follows_the_model_leaves_no_ratio():
    model, start = beginner(seed=9), beginner()
    law = Rollouts(
        model, start, Wishes(), dprm.Order(), Plan(prompts=2, generations=2, sync=2), shuffled=False, learns=False
    )
    ratios = []
    for refresh in range(4):
        law.canvases(refresh * law.plan.reuse)
        ratios.append(law.facts["log_rnd"])
    assert ratios[0] > 0
    assert ratios[1] > 0
    assert ratios[2:] == [0.0, 0.0]
    assert all(torch.equal(*pair) for pair in zip(start.parameters(), beginner().parameters()))


def test_all_arms_answer_the_same_prompts():
    host = Countdown(beginner())
    mixed = host.posed([problem for n in (3, 4, 5) for problem in problems.generate("train", 20, n).listed()])
    index, blank = HostPrompts(host, mixed, seed=2).draw(7, 12)
    again, same = HostPrompts(host, mixed, seed=2).draw(7, 12)
    assert torch.equal(index, again)
    assert torch.equal(blank, same)
    assert torch.equal(blank, mixed.canvas[index])
    assert not torch.equal(index, HostPrompts(host, mixed, seed=2).draw(8, 12)[0])
    with pytest.raises(ValueError, match="problems is empty"):
        HostPrompts(host, mixed[:0])


def test_the_verdict_is_the_reward():
    made = problems.generate("train", 10, 4)
    host = Countdown(beginner())
    prompts = HostPrompts(host, host.posed(made.listed()))
    index = torch.tensor([7, 2, 2])
    tokens = made.tokens[index].long()
    tokens[1, canvas.PROMPT :] = canvas.EOT
    tokens[1, canvas.PROMPT : canvas.PROMPT + 5] = torch.tensor([canvas.CHARACTERS.index(sign) for sign in "1+1=2"])
    tokens[2, canvas.PROMPT] = canvas.EOT
    assert prompts.reward(index, tokens).tolist() == pytest.approx([1.0, 0.1, 0.0])
    assert prompts.reward(index.flip(0), tokens)[0] == pytest.approx(0.1)


def test_the_order_observes_its_own_rollouts_prompt_by_prompt():
    order = order_of("dprm-progressive", warm=1, switch=2, ready=4)
    law = rollouts(order=order, learns=True)
    for step in range(3 * PLAN.reuse):
        law.canvases(step)
    assert order.step == 3
    assert order.baseline == "prompt"
    # One event for each of the four revealed positions of every rollout.
    assert int(order.stats.count.sum()) == 3 * PLAN.prompts * PLAN.generations * 4


def test_before_its_gate_opens_the_learning_arm_rolls_out_as_confidence_does():
    order = order_of("dprm-progressive", warm=1, switch=2, rule="soft_bon")
    learning, plain = rollouts(order=order, learns=True), rollouts()
    first = learning.canvases(0), plain.canvases(0)
    assert torch.equal(first[0].clean, first[1].clean)
    later = learning.canvases(PLAN.reuse), plain.canvases(PLAN.reuse)
    assert learning.facts["changed"] > 0
    assert not torch.equal(later[0].noisy, later[1].noisy)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"generations": 1}, "generations is 1"),
        ({"temperature": 0.0}, "temperature is 0"),
        ({"reuse": 0}, "reuse is 0"),
    ],
)
def test_impossible_plans_are_named(changes, named):
    with pytest.raises(ValueError, match=named):
        Plan(**changes)
