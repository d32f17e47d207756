"""The laws every selection obeys."""

import copy

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import dprm
from tests.draws import RULES, SIGNALS, candidates, host_order, logits, seeds, taught

shapes = st.tuples(st.integers(1, 6), st.integers(1, 40), st.integers(2, 7))


def host_value(signal: str, reading: dprm.Reading) -> torch.Tensor:
    return {"confidence": reading.confidence, "margin": reading.margin, "entropy": -reading.entropy}[signal]


@given(
    seed=seeds, shape=shapes, rule=st.sampled_from(RULES), signal=st.sampled_from(["confidence", "margin", "entropy"])
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_empty_policy_reproduces_host_order_including_ties(dtype, seed, shape, rule, signal):
    rows, length, vocabulary = shape
    reading = dprm.read(logits(seed, rows, length, vocabulary, dtype))
    flags = candidates(seed, rows, length)
    budget = torch.randint(0, length + 2, (rows,), generator=torch.Generator().manual_seed(seed))
    choice = dprm.Order(rule=rule, signal=signal).select(reading, flags, budget, 0.4, seed=seed)
    assert torch.equal(choice.mask, host_order(host_value(signal, reading), flags, budget))
    assert not choice.changed.any()


@given(seed=seeds, shape=shapes, rule=st.sampled_from(RULES), closed=st.sampled_from(["warm-up", "guidance 0"]))
def test_closed_gates_and_zero_guidance_are_the_host_order(seed, shape, rule, closed):
    rows, length, _ = shape
    settings = {"warm": 10, "switch": 20} if closed == "warm-up" else {"guidance": 0.0}
    order = taught(dprm.Order(rule=rule, **settings), seed)
    reading, flags = dprm.read(logits(seed, *shape)), candidates(seed, rows, length)
    choice = order.select(reading, flags, 2, 0.4, step=3, seed=seed)
    assert torch.equal(choice.mask, host_order(reading.confidence, flags, torch.full((rows,), 2)))


@given(seed=seeds, shape=shapes, rule=st.sampled_from(RULES))
def test_before_the_warm_up_ends_another_signal_may_decide_and_not_after(seed, shape, rule):
    rows, length, _ = shape
    order = dprm.Order(rule=rule, signal="confidence", warm_signal="entropy", warm=10, switch=20)
    reading, flags = dprm.read(logits(seed, *shape)), candidates(seed, rows, length)
    # Of more than two tokens the surest and the one of least entropy are not the same; confidence is turned round.
    reading = dprm.Reading(reading.tokens, 1.0 - reading.confidence, reading.margin, reading.entropy)
    two = torch.full((rows,), 2)
    for step, value in ((9, -reading.entropy), (10, reading.confidence)):
        choice = order.select(reading, flags, 2, 0.4, step=step, seed=seed)
        assert torch.equal(choice.mask, host_order(value, flags, two))


@given(seed=seeds, shape=shapes, rule=st.sampled_from(RULES))
def test_rows_without_evidence_keep_the_host_order_when_others_have_it(seed, shape, rule):
    rows, length, _ = shape
    order = taught(dprm.Order(phases=2, rule=rule), seed)
    order.merge(order.stats.empty())
    stats = order.stats
    stats.moments[:16] = 0  # The first phase knows nothing.
    fresh = dprm.Order(phases=2, rule=rule, baseline="global")
    fresh.merge(stats)
    reading, flags = dprm.read(logits(seed, *shape)), candidates(seed, rows, length)
    choice = fresh.select(reading, flags, 2, 0.1, seed=seed)
    assert torch.equal(choice.mask, host_order(reading.confidence, flags, torch.full((rows,), 2)))


@given(
    seed=seeds,
    shape=shapes,
    rule=st.sampled_from(RULES),
    signal=st.sampled_from(SIGNALS),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    explore=st.booleans(),
)
@example(seed=0, shape=(4, 12, 2), rule="soft_bon", signal="confidence", share=0.0, explore=True)
def test_exactly_min_of_budget_and_candidates_and_only_candidates(seed, shape, rule, signal, share, explore):
    rows, length, _ = shape
    order = taught(dprm.Order(rule=rule, signal=signal, explore=explore), seed, share)
    reading, flags = dprm.read(logits(seed, *shape)), candidates(seed, rows, length)
    budget = torch.randint(0, length + 2, (rows,), generator=torch.Generator().manual_seed(seed))
    for m in (budget, 0, 1, 3, length + 5):
        choice = order.select(reading, flags, m, 0.9, seed=seed)
        wanted = torch.minimum(torch.as_tensor(m).expand(rows), flags.sum(1))
        assert torch.equal(choice.mask.sum(1), wanted)
        assert torch.equal(choice.kept.sum(1), wanted)
        assert not (choice.mask & ~flags).any()


@given(
    seed=seeds,
    rule=st.sampled_from(RULES),
    signal=st.sampled_from([name for name in SIGNALS if name != "halton"]),
    share=st.sampled_from([0.3, 1.0]),
    explore=st.booleans(),
    pad=st.integers(1, 200),
)
def test_a_row_chooses_the_same_alone_in_a_batch_permuted_and_padded(seed, rule, signal, share, explore, pad):
    rows, length, vocabulary = 64, 20, 5
    order = taught(dprm.Order(rule=rule, signal=signal, explore=explore), seed, share)
    x, flags = logits(seed, rows, length, vocabulary), candidates(seed, rows, length)
    generator = torch.Generator().manual_seed(seed)
    row_seeds = torch.randint(0, 2**40, (rows,), generator=generator)
    progress = torch.rand(rows, generator=generator)
    budget = torch.randint(0, 6, (rows,), generator=generator)

    def chosen(index, x, flags):
        reading = dprm.read(x)
        return order.select(reading, flags, budget[index], progress[index], seed=row_seeds[index]).mask

    whole = chosen(torch.arange(rows), x, flags)
    permutation = torch.randperm(rows, generator=generator)
    assert torch.equal(chosen(permutation, x[permutation], flags[permutation]), whole[permutation])
    for row in (0, 5, 63):
        assert torch.equal(chosen(torch.tensor([row]), x[row : row + 1], flags[row : row + 1])[0], whole[row])
    wide = torch.cat([x, logits(seed + 9, rows, pad, vocabulary)], 1)
    padded = chosen(torch.arange(rows), wide, torch.cat([flags, torch.zeros(rows, pad, dtype=torch.bool)], 1))
    assert torch.equal(padded[:, :length], whole)
    assert not padded[:, length:].any()


@given(seed=seeds, rule=st.sampled_from(RULES), share=st.sampled_from([0.0, 0.4, 1.0]))
def test_select_changes_none_of_its_inputs_and_no_global_random_state(seed, rule, share):
    order = taught(dprm.Order(rule=rule, aux=3, explore=True), seed, share)
    reading, flags = dprm.read(logits(seed, 4, 15, 5)), candidates(seed, 4, 15)
    inputs = {
        "reading": reading,
        "candidates": flags,
        "budget": torch.tensor([0, 1, 2, 30]),
        "progress": torch.rand(4),
        "aux": torch.randint(0, 3, (4, 15)),
        "seed": torch.arange(4),
    }
    before, state, stats = copy.deepcopy(inputs), torch.get_rng_state(), order.stats.moments.clone()
    first = order.select(**inputs).mask
    assert torch.equal(first, order.select(**inputs).mask)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(order.stats.moments, stats)
    for name in ("candidates", "budget", "progress", "aux", "seed"):
        assert torch.equal(inputs[name], before[name])
    for name in ("tokens", "confidence", "margin", "entropy"):
        assert torch.equal(getattr(reading, name), getattr(before["reading"], name))


@given(seed=seeds)
def test_one_budget_for_all_rows_and_the_same_budget_a_row_choose_alike(seed):
    for rule in RULES:
        order = taught(dprm.Order(rule=rule), seed)
        reading, flags = dprm.read(logits(seed, 5, 30, 6)), candidates(seed, 5, 30)
        whole = order.select(reading, flags, 3, 0.25, seed=torch.arange(5)).mask
        each = order.select(reading, flags, torch.full((5,), 3), torch.full((5,), 0.25), seed=torch.arange(5)).mask
        assert torch.equal(whole, each)


@given(seed=seeds, strength=st.sampled_from([1.0, 30.0, 500.0]))
def test_picks_are_the_largest_scores_even_where_the_tilt_is_extreme(seed, strength):
    order = taught(dprm.Order(beta=2.0, guidance=strength, signal="confidence"), seed)
    reading, flags = dprm.read(logits(seed, 4, 25, 5) + torch.rand(4, 25, 5)), candidates(seed, 4, 25)
    choice = order.select(reading, flags, 2, 0.6)
    score = choice.score.double()
    for row in range(4):
        inside = score[row][choice.mask[row]]
        outside = score[row][flags[row] & ~choice.mask[row]]
        if len(inside) and len(outside):
            assert inside.min() >= outside.max() - 1e-4 * strength


def test_choice_reports_the_parts_of_its_score():
    order = taught(dprm.Order(beta=2.0, guidance=0.5, ready=200), 3)
    reading, flags = dprm.read(logits(3, 2, 9, 5)), candidates(3, 2, 9)
    choice = order.select(reading, flags, 2, 0.5)
    bonus = choice.gate * 0.5 * 2.0 * choice.value
    torch.testing.assert_close(choice.score, choice.log_psi + bonus)
    torch.testing.assert_close(choice.gate, torch.full_like(choice.gate, 0.5))
    torch.testing.assert_close(choice.log_psi, reading.confidence.log())
    assert torch.equal(choice.cell.gather(1, choice.picked), choice.picked_cell.long())


def test_cells_are_those_of_the_moment_even_if_the_host_reuses_its_buffers():
    order = taught(dprm.Order(aux=2), 0)
    reading, flags = dprm.read(logits(0, 1, 6, 4)), torch.ones(1, 6, dtype=torch.bool)
    aux = torch.zeros(1, 6, dtype=torch.int64)
    choice = order.select(reading, flags, 2, 0.5, aux=aux)
    before = choice.picked_cell.clone()
    aux.fill_(1)
    assert torch.equal(choice.cell.gather(1, choice.picked), before.long())
